/** The pins of a hub: what each tool's definition was when it was first seen or last approved. */
import {
  type CurrentTool,
  comparePins,
  type Pin,
  type PinComparison,
  type PinState,
} from "../../guard/pins/compare.ts";
import { changedVerdict, type PinMode, type PinVerdict, unusableVerdict } from "../../guard/pins/verdict.ts";
import type { Capability, CapabilityOrigin, ToolCapability } from "../../model/capability.ts";
import { type Clock, systemClock } from "../../model/clock.ts";
import type { Decision } from "../../model/decision.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import type { PinTable } from "./pin-file.ts";
import { diffOf, type PinDiff, type PinEntry, type PinEvent, type PinName } from "./pin-event.ts";
import type { PinStorage } from "./pin-storage.ts";
import { type PinOf, pinsIn, withoutPins, withPins } from "./pin-table.ts";

/** In-process tools are the user's own code: they change when the user changes them. So do skills. */
const UNPINNED: ReadonlySet<string> = new Set(["local", SKILLS_SOURCE]);
const WATCH_MS = 1000;

export interface PinsOptions {
  readonly storage: PinStorage;
  readonly mode: PinMode;
  readonly clock?: Clock;
  readonly onEvent?: (event: PinEvent) => void;
}

export class Pins {
  readonly file: string;
  /** As the storage has it. */
  readonly part: string | undefined;
  readonly mode: PinMode;
  readonly #storage: PinStorage;
  readonly #clock: Clock;
  readonly #onEvent: (event: PinEvent) => void;
  #table: PinTable = new Map();
  /** Why the file cannot be used. It is never overwritten then. */
  #unusable: ToolcribError | undefined;
  #isLoaded = false;
  readonly #current = new Map<string, ReadonlyMap<string, CurrentTool>>();
  /** The new fingerprints that were told of, by server and tool. */
  readonly #told = new Map<string, string>();
  #unsaved: PinOf[] = [];
  #saving: Promise<void> | undefined;
  #saveFailed = false;
  /** One reading or writing at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #stopWatching = (): void => {};
  #isClosed = false;

  private constructor(options: PinsOptions) {
    this.#storage = options.storage;
    this.file = options.storage.file;
    this.part = options.storage.part;
    this.mode = options.mode;
    this.#clock = options.clock ?? systemClock;
    this.#onEvent = options.onEvent ?? (() => {});
  }

  /** Reads what is pinned first, so that verdicts hold from the first definition on. */
  static async open(options: PinsOptions): Promise<Pins> {
    const pins = new Pins(options);
    if (pins.mode !== "off") await pins.#load();
    return pins;
  }

  /** To be called whenever a server's tools may have changed. A server that offers nothing is down, not changed. */
  check(server: string, tools: readonly CurrentTool[]): void {
    if (this.mode === "off" || UNPINNED.has(server) || tools.length === 0) return;
    this.#current.set(server, new Map(tools.map((tool) => [tool.definition.name, tool])));
    this.#compare(server);
  }

  /** `check` for every server among these tools. */
  checkAll(tools: readonly ToolCapability[]): void {
    for (const [server, offered] of Map.groupBy(tools, (tool) => tool.origin.source)) this.check(server, offered);
  }

  /** What the pins have to say against a capability; undefined if nothing. */
  objectionTo(capability: Capability): Decision | undefined {
    if (capability.kind !== "tool") return undefined;
    const found = this.verdictFor(capability);
    return found.verdict === "allow" ? undefined : { verdict: found.verdict, rule: found.rule };
  }

  /** Looks at the fingerprint itself, so that it is right also for a definition that `check` has not been told of yet. */
  verdictFor(tool: { readonly origin: CapabilityOrigin; readonly fingerprint: string }): PinVerdict {
    const { source, name } = tool.origin;
    if (this.mode === "off" || UNPINNED.has(source)) return { verdict: "allow" };
    const asked = { server: source, name, fingerprint: tool.fingerprint };
    if (this.#unusable !== undefined) return unusableVerdict(this.mode, asked, this.file);
    const pin = this.#table.get(source)?.get(name);
    if (pin === undefined || pin.fingerprint === tool.fingerprint) return { verdict: "allow" };
    return changedVerdict(this.mode, asked, this.file);
  }

  /** Why the file cannot be used. While it cannot, nothing is recorded or compared. */
  get problem(): ToolcribError | undefined {
    return this.#unusable;
  }

  /** Whether it has pins, or offers tools that could have. */
  knows(server: string): boolean {
    return this.#table.has(server) || this.#current.has(server);
  }

  /** How one tool stands. `off` for those that are never pinned, `unknown` while the pins cannot be used. */
  stateOf(server: string, tool: string): PinState | "unknown" | "off" {
    if (this.mode === "off" || UNPINNED.has(server)) return "off";
    const current = this.#current.get(server);
    if (this.#unusable !== undefined || current === undefined) return "unknown";
    // Not by `#comparisons`: lists ask this of every tool.
    const [pin, now] = [this.#table.get(server)?.get(tool), current.get(tool)];
    if (now === undefined) return pin === undefined ? "unknown" : "gone";
    if (pin === undefined) return "new";
    return pin.fingerprint === now.fingerprint ? "same" : "changed";
  }

  list(): PinEntry[] {
    return [...this.#table].flatMap(([server, pins]) => {
      const states = new Map(this.#comparisons(server).map(({ name, state }) => [name, state]));
      return [...pins].map(([tool, { fingerprint, pinnedAt }]): PinEntry => {
        const state = this.#current.has(server) ? states.get(tool) : undefined;
        return {
          server,
          tool,
          state: state === undefined || state === "new" ? "unknown" : state,
          fingerprint,
          pinnedAt,
        };
      });
    });
  }

  /** Every changed tool, or those of one server, or one. */
  diff(server?: string, tool?: string): PinDiff[] {
    const servers = server === undefined ? [...this.#current.keys()] : [server];
    return servers.flatMap((id) =>
      this.#comparisons(id).flatMap((compared) =>
        compared.state === "changed" && (tool === undefined || compared.name === tool) ? [diffOf(id, compared)] : [],
      ),
    );
  }

  /** Pins the definition that the server gives now, of one tool or of all that changed. */
  async approve(server: string, tool?: string): Promise<PinDiff[]> {
    if (tool !== undefined && this.#current.get(server)?.has(tool) !== true) {
      throw new ToolcribError(
        "not_found",
        `The server "${server}" offers no tool "${tool}" now, so there is nothing to approve.`,
      );
    }
    const approved = this.#comparisons(server).flatMap((compared) => {
      const isWanted = tool === undefined ? compared.state === "changed" : compared.name === tool;
      return isWanted && (compared.state === "changed" || compared.state === "new") ? [diffOf(server, compared)] : [];
    });
    // Also what is already pinned is written, so that an unusable file is an error here and not a silent success.
    const pins = approved.flatMap(({ tool: name }) => this.#pinNow(server, name));
    this.#adopt(await this.#update((table) => withPins(table, pins, { replace: true })));
    if (approved.length > 0) this.#onEvent({ type: "approved", server, tools: approved.map((each) => each.tool) });
    this.#onEvent({ type: "updated" });
    return approved;
  }

  /** Forgets the pin of a tool, those of a server, or all. What is offered next counts as seen for the first time. */
  async reset(server?: string, tool?: string): Promise<PinName[]> {
    const removed: PinName[] = [];
    const isMeant = (pin: PinOf): boolean =>
      (server === undefined || pin.server === server) && (tool === undefined || pin.name === tool);
    const table = await this.#update((before) => {
      this.#unsaved = this.#unsaved.filter((each) => !isMeant(each));
      for (const each of pinsIn(before).filter(isMeant)) removed.push({ server: each.server, tool: each.name });
      return withoutPins(before, isMeant);
    });
    this.#adopt(table);
    this.#onEvent({ type: "updated" });
    return removed;
  }

  /** Looks whether another process changed the pins. True if so. */
  async refresh(): Promise<boolean> {
    if (this.mode === "off" || !this.#storage.hasChanged()) return false;
    const problem = this.#unusable?.message;
    await this.#load();
    if (problem !== undefined && this.#unusable?.message === problem) return false;
    for (const server of this.#current.keys()) this.#compare(server);
    this.#onEvent({ type: "updated" });
    return true;
  }

  /** Keeps looking, so that an approval in another terminal counts within a second. */
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
    while (this.#saving !== undefined) await this.#saving;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWatching();
    await this.settled();
    this.#storage.close();
  }

  /** A file that is gone forgets nothing: only a file that says so does. Otherwise removing it would approve everything. */
  async #load(): Promise<void> {
    try {
      const { pins, before: known, isRestored } = await this.#inTurn(() => this.#storage.read());
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
    const known = pinsIn(this.#table);
    // Nothing was ever read: there is none yet, or it could not be used and still nothing can be compared.
    if (known.length === 0) return;
    this.#unusable = undefined;
    this.#unsaved.push(...known);
    this.#saving ??= this.#save();
    this.#tellRestored(this.#table);
  }

  #tellRestored(pins: PinTable): void {
    this.#onEvent({ type: "removed", file: this.file, tools: pinsIn(pins).length });
  }

  /** @param ours Pins that were not in the file before, so that it is no edit if another process's came first. */
  #tellEdits(before: PinTable, ours: readonly PinOf[] = []): void {
    const fresh = new Set(ours.map(({ pin }) => pin));
    const changed: PinName[] = [];
    const forgotten: PinName[] = [];
    for (const [server, tools] of before) {
      for (const [tool, pin] of tools) {
        if (fresh.has(pin)) continue;
        const now = this.#table.get(server)?.get(tool);
        if (now === undefined) forgotten.push({ server, tool });
        else if (now.fingerprint !== pin.fingerprint) changed.push({ server, tool });
      }
    }
    if (changed.length + forgotten.length > 0) this.#onEvent({ type: "edited", changed, forgotten });
  }

  async #update(change: (table: PinTable) => PinTable): Promise<PinTable> {
    const { pins, isRestored } = await this.#inTurn(() =>
      this.#storage.update((found) => change(found ?? this.#table)),
    );
    if (isRestored) this.#tellRestored(this.#table);
    return pins;
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }

  #adopt(table: PinTable): void {
    this.#unusable = undefined;
    this.#table = withPins(table, this.#unsaved);
    for (const server of this.#current.keys()) this.#compare(server);
  }

  #compare(server: string): void {
    if (this.#unusable !== undefined) return;
    const fresh: string[] = [];
    for (const compared of this.#comparisons(server)) {
      if (compared.state === "new") fresh.push(compared.name);
      if (compared.state === "changed") this.#tell(server, compared);
    }
    if (fresh.length > 0) this.#record(server, fresh);
  }

  #record(server: string, names: readonly string[]): void {
    const pins = names.flatMap((name) => this.#pinNow(server, name));
    const later = (this.#table.get(server)?.size ?? 0) > 0;
    this.#table = withPins(this.#table, pins);
    this.#unsaved.push(...pins);
    this.#saving ??= this.#save();
    this.#onEvent({ type: "recorded", server, tools: names, later });
  }

  #tell(server: string, compared: Extract<PinComparison, { state: "changed" }>): void {
    const key = JSON.stringify([server, compared.name]);
    if (this.#told.get(key) === compared.after.fingerprint) return;
    this.#told.set(key, compared.after.fingerprint);
    this.#onEvent({ type: "changed", server, tool: compared.name, diff: diffOf(server, compared).diff });
  }

  /** What another process pinned first stays: then ours is compared with that. */
  async #save(): Promise<void> {
    // Servers come up together, so what they bring is written together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#unsaved.length > 0) {
      const pins = [...this.#unsaved];
      try {
        const table = await this.#update((before) => withPins(before, pins));
        const saved = new Set(pins);
        this.#unsaved = this.#unsaved.filter((each) => !saved.has(each));
        const before = this.#table;
        this.#adopt(table);
        this.#tellEdits(before, pins);
        this.#saveFailed = false;
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
      message: `The pins cannot be written to ${this.file}: ${reason}`,
      hint: this.#storage.unwritten,
    });
  }

  #giveUp(error: unknown): void {
    const known = asToolcribError(error);
    const isNews = this.#unusable?.message !== known.message;
    // What was known is kept: a file that is damaged and then removed must not forget it either.
    this.#unusable = known;
    if (isNews) this.#onEvent({ type: "problem", message: known.message, hint: known.hint ?? "" });
  }

  #comparisons(server: string): PinComparison[] {
    return comparePins(this.#table.get(server) ?? new Map<string, Pin>(), this.#current.get(server)?.values() ?? []);
  }

  #pinNow(server: string, name: string): PinOf[] {
    const tool = this.#current.get(server)?.get(name);
    if (tool === undefined) return [];
    const pinnedAt = new Date(this.#clock.now()).toISOString();
    return [{ server, name, pin: { fingerprint: tool.fingerprint, definition: tool.definition, pinnedAt } }];
  }
}
