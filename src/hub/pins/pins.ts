/** The pins of a hub: what everything that a server offers was when it was first seen or last approved. */
import { isDeepStrictEqual } from "node:util";
import { Queue } from "../../base/async.ts";
import { fingerprint } from "../../base/fingerprint.ts";
import {
  changedVerdict,
  comparePins,
  INSTRUCTIONS,
  newVerdict,
  type Offered,
  offeredInstructions,
  offeredOf,
  type Pin,
  type PinComparison,
  pinKey,
  type PinKind,
  type PinMode,
  type PinState,
  type PinVerdict,
  unusableVerdict,
} from "./pin-comparison.ts";
import type { DefinitionChange } from "../../contract/catalog-schemas.ts";
import { compareDefinitions, type DiffBudget, reportBudget } from "./definition-diff.ts";
import type { Capability } from "../../model/capability.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Decision } from "../../model/decision.ts";
import { asSentence, asToolcribError, ToolcribError } from "../../model/errors.ts";
import { spellingsOf } from "../../policy/canonical-uri.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import {
  allPins,
  hasMasks,
  type PinStorage,
  type PinTable,
  type ServerPin,
  type UpdatedPins,
  withoutPins,
  withPins,
} from "./pin-file.ts";
import { pinDiff, type PinDiff, type PinEntry, type PinEvent, type PinName, pinName, pinTitle } from "./pin-reports.ts";

/** In-process tools and skills are the user's own: they change when the user changes them. */
const UNPINNED: ReadonlySet<string> = new Set(["local", SKILLS_SOURCE]);
const WATCH_MS = 1000;
/** Servers start together, so their pins are written together. */
const SAVE_AFTER_MS = 500;
/** Of one server. A longer list is data rather than something that a person could review. */
const MAX_RESOURCES = 500;
const INSTRUCTIONS_KEY = pinKey({ kind: "instructions", name: INSTRUCTIONS });

export interface PinsOptions {
  readonly storage: PinStorage;
  readonly mode: PinMode;
  readonly clock?: Clock;
  readonly onEvent?: (event: PinEvent) => void;
  /** False for a server whose resources come and go; asked each time. */
  readonly pinsResources?: (server: string) => boolean;
  /** Definitions are masked before they are compared. This masks pins of versions that did not. */
  readonly mask?: <Value>(value: Value) => Value;
}

/** One of the things that a server offers, in its own words. */
export interface PinChoice {
  readonly kind: PinKind;
  readonly name: string;
}

export class Pins {
  readonly file: string;
  /** As the storage has it. */
  readonly part: string | undefined;
  readonly mode: PinMode;
  readonly #storage: PinStorage;
  readonly #clock: Clock;
  readonly #onEvent: (event: PinEvent) => void;
  readonly #pinsResources: (server: string) => boolean;
  readonly #mask: <Value>(value: Value) => Value;
  #table: PinTable = new Map();
  /** Why the file cannot be used. It is never overwritten then. */
  #unusable: ToolcribError | undefined;
  #isLoaded = false;
  readonly #current = new Map<string, ReadonlyMap<string, Offered>>();
  /** Fingerprints that were reported, by server and key. */
  readonly #told = new Map<string, string>();
  /** Servers that list more resources than are pinned. */
  readonly #tooMany = new Set<string>();
  #unsaved: ServerPin[] = [];
  #saving: Promise<void> | undefined;
  #saveNow = (): void => {};
  #saveFailed = false;
  /** One reading or writing at a time. */
  readonly #queue = new Queue();
  #stopWatching = (): void => {};
  #isClosed = false;

  private constructor(options: PinsOptions) {
    this.#storage = options.storage;
    this.file = options.storage.file;
    this.part = options.storage.part;
    this.mode = options.mode;
    this.#clock = options.clock ?? systemClock;
    this.#onEvent = options.onEvent ?? (() => {});
    this.#pinsResources = options.pinsResources ?? (() => true);
    this.#mask = options.mask ?? ((value) => value);
  }

  /** Reads the pins first, so that verdicts are right from the first definition on. */
  static async open(options: PinsOptions): Promise<Pins> {
    const pins = new Pins(options);
    if (pins.mode !== "off") await pins.#load();
    return pins;
  }

  /**
   * Call it whenever the definitions of a server may have changed. A server without definitions is down, not changed.
   * @param instructions Of the server, null if it has none.
   */
  check(server: string, capabilities: readonly Capability[], instructions: string | null = null): void {
    if (this.mode === "off" || UNPINNED.has(server) || capabilities.length === 0) return;
    const pinnable = capabilities.filter(({ kind }) => this.#isPinned(server, kind)).map(offeredOf);
    const before = this.#current.get(server);
    const offered = [...pinnable, offeredInstructions(instructions)];
    const current = new Map(offered.map((each) => [pinKey(each), each]));
    this.#current.set(server, current);
    // Nearly always it is another server that changed.
    if (before === undefined || !isSameOffer(before, current)) this.#compare(server);
  }

  /** The server was removed: its pins are kept, and what it offered last is not pinned again when they are reset. */
  forgetOffer(server: string): void {
    this.#current.delete(server);
  }

  /** The objection of the pins to a capability; undefined if there is none. */
  objectionTo(capability: Capability): Decision | undefined {
    const { source, name } = capability.origin;
    if (this.mode === "off" || UNPINNED.has(source)) return undefined;
    // A resource that no server lists has no definition that could have changed.
    if (capability.fingerprint === "") return capability.kind === "resource" ? this.#heldAs(source, name) : undefined;
    const found = this.verdictFor(source, offeredOf(capability));
    return found.verdict === "allow" ? undefined : { verdict: found.verdict, rule: found.rule };
  }

  /** Whether a server's instructions are withheld. No one can be asked about them, so `ask` withholds them too. */
  withholds(server: string, instructions: string): boolean {
    const offered = offeredInstructions(instructions);
    if (this.verdictFor(server, offered).verdict === "allow") return false;
    // With a connection for each user or session, `check` saw the instructions of only one of them.
    const pin = this.#table.get(server)?.get(INSTRUCTIONS_KEY);
    if (pin !== undefined && this.problemOf(server) === undefined)
      this.#tell(server, { state: "changed", pin, after: offered });
    return true;
  }

  /** Compares the fingerprint itself, so it is right also for a definition that `check` has not seen yet. */
  verdictFor(server: string, offered: Offered): PinVerdict {
    if (this.mode === "off" || UNPINNED.has(server) || !this.#isPinned(server, offered.kind))
      return { verdict: "allow" };
    const problem = this.problemOf(server);
    const pin = problem === undefined ? this.#table.get(server)?.get(pinKey(offered)) : undefined;
    if (pin?.fingerprint === offered.fingerprint) return { verdict: "allow" };
    const asked = { server, kind: offered.kind, name: offered.name, fingerprint: offered.fingerprint };
    const file = this.#fileOf(server);
    if (problem !== undefined) return unusableVerdict(this.mode, asked, file);
    if (pin !== undefined) return changedVerdict(this.mode, asked, file);
    return this.#isCovered(server, offered.kind) ? newVerdict(this.mode, asked, file) : { verdict: "allow" };
  }

  /** Why the file cannot be used. While it cannot, nothing is recorded or compared. */
  get problem(): ToolcribError | undefined {
    return this.#unusable;
  }

  /** The same for one server: the lock file of a project may be the only one that cannot be used. */
  problemOf(server: string): ToolcribError | undefined {
    return this.#unusable ?? this.#storage.problemOf?.(server);
  }

  /** Whether it has pins, or offers something that could have. */
  knows(server: string): boolean {
    return this.#table.has(server) || this.#current.has(server);
  }

  /** The state of one pin. `off` for what is never pinned, `unknown` while the pins cannot be used. */
  stateOf(server: string, name: string, kind: PinKind = "tool"): PinState | "unknown" | "off" {
    if (this.mode === "off" || UNPINNED.has(server) || !this.#isPinned(server, kind)) return "off";
    const current = this.#current.get(server);
    if (this.problemOf(server) !== undefined || current === undefined) return "unknown";
    // Not by `#comparisons`: lists ask this of every tool.
    const key = pinKey({ kind, name });
    const [pin, now] = [this.#table.get(server)?.get(key), current.get(key)];
    if (now === undefined) return pin === undefined ? "unknown" : "gone";
    if (pin === undefined) return "new";
    return pin.fingerprint === now.fingerprint ? "same" : "changed";
  }

  /** Everything that is pinned, and what is offered and held because it is not. */
  list(): PinEntry[] {
    const servers = new Set([...this.#table.keys(), ...this.#current.keys()]);
    return [...servers].flatMap((server) => {
      const isKnown = this.#current.has(server);
      const compared = isKnown && this.problemOf(server) === undefined ? this.#comparisons(server) : [];
      const states = new Map(compared.flatMap((each) => ("pin" in each ? [[each.pin, each.state] as const] : [])));
      const pinned = [...(this.#table.get(server)?.values() ?? [])]
        .map((pin) => ({ pin, state: states.get(pin) ?? ("unknown" as const) }))
        .filter(({ pin, state }) => !isEmptyInstructions(pin) || state === "changed");
      const fresh = compared.flatMap((each) => (each.state === "new" ? [{ ...each.after, pinnedAt: "" }] : []));
      return [
        ...pinned.map(({ pin, state }) => entryOf(server, pin, state)),
        ...fresh.map((thing) => entryOf(server, thing, "new")),
      ];
    });
  }

  /** Everything that changed or is new, or that of one server, or one thing. */
  diff(server?: string, choice?: PinChoice): PinDiff[] {
    const servers = server === undefined ? [...this.#current.keys()] : [server];
    const budget = reportBudget();
    return servers.flatMap((id) => this.#differing(id, choice).map((compared) => pinDiff(id, compared, budget)));
  }

  /** How one thing differs from its pin; undefined if it does not. */
  changeOf(server: string, choice: PinChoice): DefinitionChange | undefined {
    const [compared] = this.#differing(server, choice);
    if (compared === undefined) return undefined;
    const pin = compared.state === "changed" ? compared.pin : undefined;
    return {
      state: compared.state,
      pinnedAt: pin?.pinnedAt ?? null,
      ...compareDefinitions(pin?.definition ?? {}, compared.after.definition),
    };
  }

  /** Pins what the server offers now: one thing, or all that changed or is new. */
  async approve(server: string, choice?: PinChoice): Promise<PinDiff[]> {
    if (choice !== undefined && this.#current.get(server)?.has(pinKey(choice)) !== true) {
      const what = pinTitle({ kind: choice.kind, tool: JSON.stringify(choice.name) });
      throw new ToolcribError(
        "not_found",
        `The server "${server}" offers no ${what} now, so there is nothing to approve.`,
      );
    }
    const differing = this.#differing(server, choice);
    const budget = reportBudget();
    const approved = differing.map((compared) => pinDiff(server, compared, budget));
    // Also what is already pinned is written, so that an unusable file is an error here and not a silent success.
    const pins = this.#pinNow(
      server,
      differing.map(({ after }) => after),
    );
    const change = (table: PinTable): PinTable => withPins(table, pins, { replace: true });
    this.#adopt((await this.#update(change, (id) => id === server)).pins);
    this.#tellMasked(server, pins);
    if (approved.length > 0) this.#onEvent({ type: "approved", server, pins: approved.map(pinNameOf) });
    this.#onEvent({ type: "updated" });
    return approved;
  }

  /**
   * Forgets one pin, those of a server, or all. A server without pins counts as seen for the first time; one thing of a
   * server that has others counts as new.
   */
  async reset(server?: string, choice?: PinChoice): Promise<PinName[]> {
    const removed: PinName[] = [];
    const key = choice && pinKey(choice);
    const isMeant = (each: ServerPin): boolean =>
      (server === undefined || each.server === server) && (key === undefined || pinKey(each.pin) === key);
    const updated = await this.#update(
      (before) => {
        // Pins of a moment ago may not be written yet.
        const unwritten = this.#unsaved.filter(
          (each) => isMeant(each) && before.get(each.server)?.has(pinKey(each.pin)) !== true,
        );
        this.#unsaved = this.#unsaved.filter((each) => !isMeant(each));
        removed.push(...namedPins([...allPins(before).filter(isMeant), ...unwritten]));
        return withoutPins(before, isMeant);
      },
      (id) => server === undefined || id === server,
    );
    this.#adopt(updated.pins);
    this.#onEvent({ type: "updated" });
    return removed;
  }

  /** Looks whether another process changed the pins. True if so. */
  async refresh(): Promise<boolean> {
    if (this.mode === "off" || !this.#storage.hasChanged()) return false;
    const problem = this.#unusable?.message;
    const before = this.#table;
    await this.#load();
    // Also a write of our own changes the file, and may be seen before it is known to be ours.
    if (problem === this.#unusable?.message && isDeepStrictEqual(before, this.#table)) return false;
    for (const server of this.#current.keys()) this.#compare(server);
    this.#onEvent({ type: "updated" });
    return true;
  }

  /** Checks again and again, so that an approval in another terminal counts within a second. */
  watch(): void {
    if (this.mode === "off" || this.#isClosed) return;
    this.#storage.follow(() => void this.refresh());
    this.#lookLater();
  }

  #lookLater(): void {
    this.#stopWatching();
    if (this.#isClosed) return;
    this.#stopWatching = this.#clock.after(WATCH_MS, () => {
      void this.refresh().finally(() => this.#lookLater());
    });
  }

  /** Resolves when everything recorded is in the file, as far as it can be. Never rejects. */
  async settled(): Promise<void> {
    while (this.#saving !== undefined) {
      this.#saveNow();
      await this.#saving;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWatching();
    await this.settled();
    this.#storage.close();
  }

  /** A missing file forgets nothing. Otherwise removing it would approve everything. */
  async #load(): Promise<void> {
    try {
      const { pins, before: known, isRestored } = await this.#queue.run(() => this.#storage.read());
      const before = this.#isLoaded ? this.#table : (known ?? this.#table);
      this.#isLoaded = true;
      if (pins === undefined) return this.#restore();
      this.#unusable = undefined;
      this.#table = withPins(pins, this.#unsaved);
      if (isRestored) this.#tellRestored(pins);
      if (this.#unsaved.length > 0) this.#saving ??= this.#save();
      this.#tellEdits(before);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #restore(): void {
    const known = allPins(this.#table);
    // Nothing was ever read: there is none yet, or it could not be used and still nothing can be compared.
    if (known.length === 0) return;
    this.#unusable = undefined;
    this.#unsaved.push(...known);
    this.#saving ??= this.#save();
    this.#tellRestored(this.#table);
  }

  #tellRestored(pins: PinTable): void {
    this.#onEvent({ type: "removed", file: this.file, pins: namedPins(allPins(pins)).length });
  }

  /** @param ours New pins: it is not an edit if another process has pinned them first. */
  #tellEdits(before: PinTable, ours: readonly ServerPin[] = []): void {
    const fresh = new Set(ours.map(({ pin }) => pin));
    const changed: PinName[] = [];
    const forgotten: PinName[] = [];
    for (const { server, pin } of allPins(before)) {
      if (fresh.has(pin) || isEmptyInstructions(pin)) continue;
      const now = this.#table.get(server)?.get(pinKey(pin));
      if (now === undefined) forgotten.push(pinName(server, pin));
      else if (now.fingerprint !== pin.fingerprint) changed.push(pinName(server, pin));
    }
    if (changed.length + forgotten.length > 0) this.#onEvent({ type: "edited", changed, forgotten });
  }

  async #update(change: (table: PinTable) => PinTable, isNeeded?: (server: string) => boolean): Promise<UpdatedPins> {
    const updated = await this.#queue.run(() =>
      this.#storage.update((found) => change(found ?? this.#table), isNeeded),
    );
    if (updated.isRestored) this.#tellRestored(this.#table);
    return updated;
  }

  #fileOf(server: string): string {
    return this.#storage.fileOf?.(server) ?? this.file;
  }

  /** The objection to a resource that the server lists in another spelling of the same URI. */
  #heldAs(server: string, uri: string): Decision | undefined {
    const listed = [...(this.#current.get(server)?.values() ?? [])].filter(({ kind }) => kind === "resource");
    let asked: ReadonlySet<string> | undefined;
    for (const resource of listed) {
      const found = this.verdictFor(server, resource);
      if (found.verdict === "allow") continue;
      asked ??= new Set(spellingsOf(uri));
      const spellings = spellingsOfListed(resource);
      // A URI with too many spellings to list may be this one.
      const isSame = asked.size === 0 || spellings === undefined || spellings.some((each) => asked?.has(each));
      if (isSame) return { verdict: found.verdict, rule: found.rule };
    }
    return undefined;
  }

  #adopt(table: PinTable): void {
    this.#unusable = undefined;
    this.#table = withPins(table, this.#unsaved);
    for (const server of this.#current.keys()) this.#compare(server);
  }

  #compare(server: string): void {
    if (this.problemOf(server) !== undefined) return;
    const first: Offered[] = [];
    const later: Offered[] = [];
    const budget = reportBudget();
    for (const compared of this.#comparisons(server)) {
      if (compared.state === "new") (this.#isCovered(server, compared.after.kind) ? later : first).push(compared.after);
      if (compared.state === "same") shareDefinition(compared);
      if (compared.state === "changed" && !this.#heal(server, compared)) this.#tell(server, compared, budget);
    }
    if (first.length > 0) this.#record(server, first, { later: false });
    if (later.length === 0) return;
    if (this.mode === "warn") this.#record(server, later, { later: true });
    else this.#hold(server, later);
  }

  /** Resources are not pinned where they come and go. */
  #isPinned(server: string, kind: PinKind): boolean {
    return kind !== "resource" || this.#pinsResources(server);
  }

  /**
   * Whether things of this kind were looked at when the server was pinned, so that one without a pin is new. Instructions are
   * always pinned with the rest, also where there are none: a server without that pin was pinned by a version that knew
   * tools only.
   */
  #isCovered(server: string, kind: PinKind): boolean {
    const pins = this.#table.get(server);
    return pins !== undefined && (kind === "tool" || pins.has(INSTRUCTIONS_KEY));
  }

  #record(server: string, things: readonly Offered[], { later }: { readonly later: boolean }): void {
    const pins = this.#pinNow(server, this.#withinBound(server, things));
    if (pins.length === 0) return;
    this.#table = withPins(this.#table, pins);
    this.#unsaved.push(...pins);
    this.#saving ??= this.#save();
    const named = namedPins(pins);
    if (named.length > 0) this.#onEvent({ type: "recorded", server, pins: named, later });
    this.#tellMasked(server, pins);
  }

  /** Without the resources above the limit. */
  #withinBound(server: string, things: readonly Offered[]): Offered[] {
    const known = [...(this.#table.get(server)?.values() ?? [])].filter(({ kind }) => kind === "resource").length;
    let room = Math.max(MAX_RESOURCES - known, 0);
    const within = things.filter(({ kind }) => kind !== "resource" || room-- > 0);
    if (within.length < things.length && !this.#tooMany.has(server)) {
      this.#tooMany.add(server);
      const count = [...(this.#current.get(server)?.values() ?? [])].filter(({ kind }) => kind === "resource").length;
      this.#onEvent({ type: "too-many", server, count, most: MAX_RESOURCES });
    }
    return within;
  }

  #hold(server: string, things: readonly Offered[]): void {
    const fresh = things.filter((each) => this.#isNews(server, each));
    if (fresh.length > 0) {
      this.#onEvent({ type: "held", server, pins: fresh.map((each) => pinName(server, each)) });
    }
  }

  #tell(
    server: string,
    compared: Extract<PinComparison, { state: "changed" }>,
    budget: DiffBudget = reportBudget(),
  ): void {
    if (!this.#isNews(server, compared.after)) return;
    const { diff } = pinDiff(server, compared, budget);
    this.#onEvent({ type: "changed", pin: pinName(server, compared.after), diff });
  }

  /** True once for each definition. */
  #isNews(server: string, thing: Offered): boolean {
    const key = reportKey(pinName(server, thing));
    if (this.#told.get(key) === thing.fingerprint) return false;
    this.#told.set(key, thing.fingerprint);
    return true;
  }

  #tellMasked(server: string, pins: readonly ServerPin[]): void {
    const masked = pins.filter(({ pin }) => hasMasks(pin.definition)).map(({ pin }) => pinName(server, pin));
    if (masked.length > 0) this.#onEvent({ type: "masked", file: this.#fileOf(server), server, pins: masked });
  }

  /** Replaces a pin of a version that did not mask, if the definition is the same once masked. */
  #heal(server: string, { pin, after }: Extract<PinComparison, { state: "changed" }>): boolean {
    const masked = this.#mask(pin.definition);
    if (masked === pin.definition || fingerprint(masked) !== after.fingerprint) return false;
    const healed = { ...pin, definition: masked, fingerprint: after.fingerprint };
    const pins = [{ server, pin: healed, replaces: pin.fingerprint }];
    this.#table = withPins(this.#table, pins);
    this.#unsaved.push(...pins);
    this.#saving ??= this.#save();
    this.#tellMasked(server, pins);
    return true;
  }

  /** A pin that another process wrote first stays, and ours is compared with it. */
  async #save(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, SAVE_AFTER_MS);
      this.#saveNow = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    while (this.#unsaved.length > 0) {
      const pins = [...this.#unsaved];
      try {
        const { pins: table, failed } = await this.#update((before) => withPins(before, pins));
        const saved = new Set(pins.filter(({ server }) => failed?.isOf(server) !== true));
        this.#unsaved = this.#unsaved.filter((each) => !saved.has(each));
        const before = this.#table;
        this.#adopt(table);
        this.#tellEdits(before, pins);
        this.#saveFailed = false;
        // The storage has reported it.
        if (failed !== undefined && this.#unsaved.every(({ server }) => failed.isOf(server))) break;
      } catch (error) {
        // They are tried again with the next ones, or when the file is different.
        this.#notSaved(error);
        break;
      }
    }
    this.#saving = undefined;
  }

  #notSaved(error: unknown): void {
    // Damaged since it was read.
    if (error instanceof ToolcribError && error.code === "invalid_config") {
      this.#giveUp(error);
      return;
    }
    if (this.#saveFailed) return;
    this.#saveFailed = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#onEvent({
      type: "problem",
      message: `The pins cannot be written to ${this.file}: ${asSentence(reason)}`,
      hint: this.#storage.unwritten,
    });
  }

  #giveUp(error: unknown): void {
    const known = asToolcribError(error);
    const isNews = this.#unusable?.message !== known.message;
    // The known pins stay: a file that is damaged and then removed must not forget them either.
    this.#unusable = known;
    if (isNews) this.#onEvent({ type: "problem", message: known.message, hint: known.hint ?? "" });
  }

  #comparisons(server: string): PinComparison[] {
    const pins = this.#table.get(server) ?? new Map<string, Pin>();
    const compared = new Map([...pins].filter(([, { kind }]) => this.#isPinned(server, kind)));
    return comparePins(compared, this.#current.get(server) ?? new Map<string, Offered>());
  }

  #differing(server: string, choice?: PinChoice): Extract<PinComparison, { state: "changed" | "new" }>[] {
    const key = choice && pinKey(choice);
    return this.#comparisons(server).filter(
      (compared): compared is Extract<PinComparison, { state: "changed" | "new" }> =>
        (compared.state === "changed" || compared.state === "new") &&
        (key === undefined || pinKey(compared.after) === key),
    );
  }

  #pinNow(server: string, things: readonly Offered[]): ServerPin[] {
    const pinnedAt = new Date(this.#clock.now()).toISOString();
    return things.map((thing) => ({ server, pin: { ...thing, pinnedAt } }));
  }
}

/** Those of an earlier run were read from a file, and are as large as all that servers offer: the same is kept once. */
function shareDefinition({ pin, after }: Extract<PinComparison, { state: "same" }>): void {
  pin.definition = after.definition;
  pin.fingerprint = after.fingerprint;
}

/** By fingerprint, because instructions are a new object each time. */
function isSameOffer(before: ReadonlyMap<string, Offered>, now: ReadonlyMap<string, Offered>): boolean {
  if (before.size !== now.size) return false;
  for (const [key, { fingerprint: print }] of now) if (before.get(key)?.fingerprint !== print) return false;
  return true;
}

/** The spellings of a resource that is listed. What is offered is immutable. */
const listedSpellings = new WeakMap<Offered, readonly string[] | "unknown">();

function spellingsOfListed(resource: Offered): readonly string[] | undefined {
  let spellings = listedSpellings.get(resource);
  if (spellings === undefined) listedSpellings.set(resource, (spellings = spellingsOf(resource.name) ?? "unknown"));
  return spellings === "unknown" ? undefined : spellings;
}

function entryOf(server: string, pin: Pin, state: PinEntry["state"]): PinEntry {
  return { ...pinName(server, pin), state, fingerprint: pin.fingerprint, pinnedAt: pin.pinnedAt };
}

/** The pin of a server without instructions, which is not shown. */
function isEmptyInstructions({ kind, definition }: Offered): boolean {
  return kind === "instructions" && Object.keys(definition).length === 0;
}

function namedPins(pins: readonly ServerPin[]): PinName[] {
  return pins.filter(({ pin }) => !isEmptyInstructions(pin)).map(({ server, pin }) => pinName(server, pin));
}

function pinNameOf({ server, kind, tool }: PinName): PinName {
  return { server, kind, tool };
}

function reportKey({ server, kind, tool }: PinName): string {
  return JSON.stringify([server, kind, tool]);
}
