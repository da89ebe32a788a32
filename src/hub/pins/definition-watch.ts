/** Looks at every definition as it is discovered: is it what it was, and does it read like an attack? */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { hidingLayerOf, misfitOf } from "../../catalog/overrides.ts";
import { fingerprint } from "../../base/fingerprint.ts";
import {
  type DefinitionFinding,
  detectInDefinition,
  detectInInstructions,
  scanDefinition,
  scanInstructions,
  SCANNER,
} from "../../guard/scan-definition.ts";
import { describeShadowing, findShadowingAmong, type Shadowing } from "./shadowing.ts";
import { type Capability, originalOf, type ToolCapability } from "../../model/capability.ts";
import type { GuardRules } from "../../model/config.ts";
import type { Decision } from "../../model/decision.ts";
import { type Finding, isAtLeast } from "../../model/finding.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { serverSkills } from "../../skills/offer/offered-skill.ts";
import type { Store } from "../../store/store.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { Objection } from "../call/access-control.ts";
import type { CallPath } from "../call/call-context.ts";
import type { HubEvents } from "../hub-events.ts";
import { openPins, partOf, pinLocation } from "./open-pins.ts";
import { DefinitionReports, type PinEvent, PinReports } from "./pin-reports.ts";
import type { Pins } from "./pins.ts";

/** In a message or a record; the rest is counted. */
const MAX_REPORTED = 20;
/** Texts whose findings are remembered; with a connection for each user there is one for each. */
const MAX_SCANNED_TEXTS = 200;
/** After this long, what a detector failed on is given to it again, once someone asks for it. */
const RETRY_MS = 60_000;

interface DefinitionWatchOptions {
  readonly config: LoadedConfig;
  readonly home: string;
  readonly clock: Clock;
  readonly catalog: Catalog;
  readonly events: Emitter<HubEvents>;
  readonly audit: Pick<AuditLog, "event">;
  readonly store: Store | undefined;
  readonly isTrusted: (source: string) => boolean;
  /** The instructions of a connected server, null if it has none. */
  readonly instructionsOf: (server: string) => string | null;
  /** False for a server whose resources come and go. */
  readonly pinsResources: (server: string) => boolean;
  readonly mask: <Value>(value: Value) => Value;
  /** By the current config. */
  readonly readers: () => Pick<CallPath, "scan" | "detects">;
  /** Whether a session brought it: what comes and goes with a session is not pinned. */
  readonly isMounted: (source: string) => boolean;
  /** Hides the secrets of the session that brought it from detectors that are elsewhere. */
  readonly maskOf: (source: string) => ((text: string) => string) | undefined;
  /** Visibility changed although the catalog did not. */
  readonly onVisibilityChange: () => void;
}

export class DefinitionWatch {
  readonly objections: readonly Objection[];
  readonly #options: DefinitionWatchOptions;
  readonly #scanned: ScannedDefinitions;
  readonly #clean: ScannedTexts;
  /** Definitions that sessions brought. */
  readonly #recorded = new WeakSet<object>();
  readonly #scannedTexts = new Map<string, readonly Finding[]>();
  /** Instructions that a detector still reads. */
  readonly #readTexts = new Set<string>();
  /** Instructions that a detector failed on, and when they are read again. */
  readonly #failedTexts = new Map<string, number>();
  #config: LoadedConfig;
  #isTrusted: (source: string) => boolean;
  readonly #reports: DefinitionReports;
  #pins: Pins;
  /** The pins of a config that is about to be applied. */
  #prepared: Pins | undefined;
  /** Pins that were replaced and still write. */
  #writing: Promise<unknown> = Promise.resolve();

  /** Reads the pins first, so that they apply to the first definition. */
  static async open(options: DefinitionWatchOptions): Promise<DefinitionWatch> {
    const { guard } = options.config.config;
    const [pins, clean] = await Promise.all([
      openPinsOf(options, options.config),
      ScannedTexts.open({ ...options, scanner: SCANNER, guard }),
    ]);
    return new DefinitionWatch(options, pins, clean);
  }

  private constructor(options: DefinitionWatchOptions, pins: Pins, clean: ScannedTexts) {
    this.#options = options;
    this.#clean = clean;
    this.#reports = new DefinitionReports(options);
    this.#config = options.config;
    this.#isTrusted = options.isTrusted;
    this.#pins = pins;
    this.#scanned = new ScannedDefinitions({
      clock: options.clock,
      clean,
      guard: () => this.#config.config.guard,
      readers: options.readers,
      maskOf: options.maskOf,
      onDetected: () => {
        this.look();
        options.onVisibilityChange();
      },
      isTrusted: (source) => this.#isTrusted(source),
      onSuspicious: ({ kind, origin }, findings) => {
        const message = `The definition of the ${kind} ${origin.name} looks like an attack: ${verdictOn(findings)}`;
        this.#reports.warn("definition.suspicious", origin, message, { findings: recorded(findings) });
      },
      onShadowing: (found) => this.#shadowed(found),
    });
    this.objections = [
      (capability) => {
        const objection = this.#pins.objectionTo(originalOf(capability));
        return objection !== undefined && options.isMounted(capability.origin.source) ? undefined : objection;
      },
      (capability) => this.#scanned.objectionTo(originalOf(capability)),
      overrideObjection,
    ];
  }

  /** From now on every version of the catalog is checked before other listeners get it. */
  start(): void {
    this.#options.catalog.on("change", () => this.look());
    this.#pins.watch();
  }

  /** Reads the pins of a config that `configure` is going to get, if they differ from the current ones. */
  async prepare(config: LoadedConfig): Promise<void> {
    await this.#prepared?.close();
    this.#prepared = undefined;
    if (isOf(this.#pins, config, this.#options.home)) return;
    // It may be the same file in another mode: pending pins must be written before it is read.
    await this.#pins.settled();
    this.#prepared = await openPinsOf(this.#options, config);
  }

  /** The current pins. */
  get pins(): Pins {
    return this.#pins;
  }

  /** From now on another config applies. The listed definitions are checked again if it has other rules for them. */
  configure(config: LoadedConfig, isTrusted: (source: string) => boolean): void {
    const isSame = isDeepStrictEqual(this.#config.config.guard, config.config.guard);
    if (!isSame) {
      this.#scannedTexts.clear();
      this.#failedTexts.clear();
      this.#scanned.forget();
      this.#clean.forget(config.config.guard);
    }
    this.#config = config;
    this.#isTrusted = isTrusted;
    const before = this.#pins;
    const prepared = this.#prepared;
    if (prepared !== undefined && isOf(prepared, config, this.#options.home)) {
      this.#writing = Promise.all([this.#writing, before.close()]);
      this.#pins = prepared;
      this.#prepared = undefined;
      this.#pins.watch();
    } else if (isSame) return;
    this.look();
  }

  /** Checks the listed definitions. Nothing is reported twice. */
  look(): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    const all = [...tools.map(originalOf), ...prompts, ...resources, ...templates];
    this.#checkPins(all);
    this.#scanned.check(all);
  }

  /** Its pins, and those of its skills, stay for when it comes back, and can be reset. */
  serverRemoved(server: string): void {
    for (const source of [server, serverSkills(server)]) this.#pins.forgetOffer(source);
  }

  /** The text in a definition that reads like an attack, for one that is not in the hub's catalog. It is recorded only. */
  suspicion(capability: Capability): string | undefined {
    if (this.#config.config.guard.definitions === "ignore") return undefined;
    const found = this.#scanned.findings(capability);
    if (found.length === 0) return undefined;
    if (!this.#recorded.has(capability.definition)) {
      this.#recorded.add(capability.definition);
      this.#reports.record("definition.suspicious", capability.origin, { findings: recorded(found) });
    }
    return verdictOn(found);
  }

  /** Models read a server's instructions too. They may change while its lists stay the same. */
  checkInstructions(server: string, text: string | null | undefined): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    this.#checkPins(
      [...tools.map(originalOf), ...prompts, ...resources, ...templates].filter(
        ({ origin }) => origin.source === server,
      ),
    );
    const serious = this.#suspicions(server, text);
    if (serious.length === 0) return;
    const origin = { source: server, name: "instructions" };
    const findings = serious.map(({ code, severity, score }) => ({ code, severity, score }));
    const verdict = verdictOn(serious.map((finding) => ({ path: "", finding })));
    const message = `The server's instructions look like an attack: ${verdict}`;
    this.#reports.warn("instructions.suspicious", origin, message, { findings });
  }

  /** Findings in the current lists. */
  findings(): DefinitionReport[] {
    if (this.#config.config.guard.definitions === "ignore") return [];
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    const all: readonly Capability[] = [...tools, ...prompts, ...resources, ...templates];
    const servers = new Set(all.map(({ origin }) => origin.source));
    return [
      ...all.flatMap((capability) =>
        this.#scanned.findings(originalOf(capability)).map(({ path, finding: { code, severity, excerpt } }) => {
          const { kind, name, origin } = capability;
          return { server: origin.source, kind, name, code, severity, text: `${path}: ${excerpt}` };
        }),
      ),
      ...[...servers].flatMap((server) =>
        this.#suspicions(server, this.#options.instructionsOf(server)).map(({ code, severity, excerpt }) => ({
          ...{ server, kind: "instructions", name: "instructions", code, severity, text: excerpt },
        })),
      ),
      ...this.#scanned.shadowing.map((found) => ({
        ...{ server: found.tool.server, kind: "tool", name: found.tool.name, severity: found.severity },
        ...{ code: "shadowing", text: describeShadowing(found) },
      })),
    ];
  }

  /** Whether a server's instructions are withheld from clients. */
  withholdsInstructions(server: string, text: string): boolean {
    if (!this.#options.isMounted(server) && this.#pins.withholds(server, text)) return true;
    if (this.#config.config.guard.definitions !== "quarantine") return false;
    return this.#suspicions(server, text).length > 0 || this.#readTexts.has(text);
  }

  async close(): Promise<void> {
    this.#scanned.close();
    await Promise.all([this.#clean.close(), this.#writing, this.#prepared?.close(), this.#pins.close()]);
  }

  /** @param capabilities All of each server that is among them. */
  #checkPins(capabilities: readonly Capability[]): void {
    for (const [server, offered] of Map.groupBy(capabilities, ({ origin }) => origin.source)) {
      this.#pins.check(server, offered, this.#options.instructionsOf(server));
    }
  }

  #suspicions(server: string, text: string | null | undefined): readonly Finding[] {
    if (text === null || text === undefined || this.#isTrusted(server)) return [];
    if (this.#config.config.guard.definitions === "ignore") return [];
    let serious = this.#scannedTexts.get(text);
    if (serious === undefined) {
      const { sensitivity } = this.#config.config.guard;
      const scan = (): Finding[] => scanInstructions(text, sensitivity).filter(isSerious);
      const detects = this.#options.readers().detects("instructions");
      serious = detects ? scan() : this.#clean.findingsOf(fingerprint({ instructions: text }), scan);
      if (detects) this.#detectInstructions(server, text, serious).catch(() => {});
      if (this.#scannedTexts.size >= MAX_SCANNED_TEXTS) {
        this.#scannedTexts.clear();
        this.#failedTexts.clear();
      }
      this.#scannedTexts.set(text, serious);
    } else if ((this.#failedTexts.get(text) ?? Infinity) <= this.#options.clock.now()) {
      this.#detectInstructions(server, text, serious).catch(() => {});
    }
    return serious;
  }

  async #detectInstructions(server: string, text: string, known: readonly Finding[]): Promise<void> {
    const { readers, maskOf, onVisibilityChange, clock } = this.#options;
    const { guard } = this.#config.config;
    // What was passed once is not withheld while it is read again.
    if (!this.#failedTexts.delete(text)) this.#readTexts.add(text);
    try {
      const { sensitivity } = guard;
      const onUnread = (): void => void this.#failedTexts.set(text, clock.now() + RETRY_MS);
      const found = await detectInInstructions(readers().scan, text, { sensitivity, onUnread, mask: maskOf(server) });
      // Other rules may apply by now.
      if (guard !== this.#config.config.guard) return;
      this.#scannedTexts.set(text, found.filter(isSerious));
    } finally {
      this.#readTexts.delete(text);
    }
    if (this.#scannedTexts.get(text)?.length !== known.length) this.checkInstructions(server, text);
    onVisibilityChange();
  }

  /** Honest servers have tools of the same name and mention other tools: slight cases are only recorded. */
  #shadowed(found: readonly Shadowing[]): void {
    const { serious = [], slight = [] } = Object.groupBy(found, ({ severity }) =>
      isAtLeast(severity, "medium") ? "serious" : "slight",
    );
    for (const shadowing of serious) {
      this.#reports.warn("definition.shadowing", originOf(shadowing), describeShadowing(shadowing), { ...shadowing });
    }
    for (const shadowing of slight.slice(0, MAX_REPORTED)) {
      this.#reports.record("definition.shadowing", originOf(shadowing), { ...shadowing });
    }
    // Two servers of one kind have dozens; `toolcrib doctor` shows them all.
    if (slight.length > MAX_REPORTED) {
      this.#reports.record("definition.shadowing", null, { severity: "low", omitted: slight.length - MAX_REPORTED });
    }
  }
}

/** A suspicious place in a definition that is listed. */
interface DefinitionReport {
  readonly server: string;
  readonly kind: string;
  /** Public name. */
  readonly name: string;
  readonly code: string;
  readonly severity: string;
  readonly text: string;
}

/** Holds a tool that the config hides, or whose override no longer fits, whatever `guard.pins` says. */
function overrideObjection(capability: Capability): Decision | undefined {
  if (capability.kind !== "tool" || capability.shape === undefined) return undefined;
  const hiding = hidingLayerOf(capability);
  if (hiding !== undefined) {
    const { level, where } = hiding;
    return { verdict: "deny", rule: { level, list: "overrides", pattern: "hidden", where } };
  }
  const { misfit, where } = misfitOf(capability) ?? {};
  if (misfit === undefined || where === undefined) return undefined;
  const pattern = `changed: the override no longer fits, because ${misfit}`;
  return { verdict: "deny", rule: { level: "pin", list: "pins", pattern, where } };
}

function openPinsOf(options: DefinitionWatchOptions, config: LoadedConfig): Promise<Pins> {
  const reports = new PinReports(options);
  const { home, store, clock, pinsResources, mask } = options;
  const onEvent = (event: PinEvent): void => reports.take(event);
  return openPins(pinLocation(config, home), { store, clock, pinsResources, mask, onEvent });
}

function isOf(pins: Pins, config: LoadedConfig, home: string): boolean {
  const place = pinLocation(config, home);
  return pins.file === place.file && pins.mode === place.mode && pins.part === partOf(place);
}

/** Without excerpts: an attack in a log is one on whoever, or whatever, reads the log. */
function verdictOn(findings: readonly DefinitionFinding[]): string {
  const places = [...Map.groupBy(findings, ({ path }) => plainPath(path))].map(([path, found]) => {
    const codes = [...new Set(found.map(({ finding }) => finding.code))].join(", ");
    return path === "" ? codes : `${codes} in ${path}`;
  });
  const more = places.length > MAX_REPORTED ? `; and in ${places.length - MAX_REPORTED} more places` : "";
  const score = Math.max(...findings.map(({ finding }) => finding.score));
  return `${places.slice(0, MAX_REPORTED).join("; ")}${more} (score ${score.toFixed(1)} of 10)`;
}

/** The same for the audit log. */
function recorded(findings: readonly DefinitionFinding[]): Record<string, unknown>[] {
  return findings.map(({ path, finding: { code, severity, score } }) => ({
    path: plainPath(path),
    ...{ code, severity, score },
  }));
}

/** Keys are a server's words too: from the first that is not plain on, they are left out. */
function plainPath(path: string): string {
  const at = path.search(/[^\w.$[\]-]/);
  return at === -1 ? path : `${path.slice(0, path.lastIndexOf(".", at) + 1)}…`;
}

function originOf({ tool }: Shadowing): { source: string; name: string } {
  return { source: tool.server, name: tool.name };
}

/** The setting in the store that has the fingerprints. */
const CLEAN = "definitions.clean";
const MAX_CLEAN = 20_000;
const SAVE_MS = 1000;

interface ScannedTextsOptions {
  readonly store: Pick<Store, "settings"> | undefined;
  readonly clock: Clock;
  /** Nothing is kept without one. */
  readonly scanner: string | undefined;
  readonly guard: GuardRules;
}

/**
 * The fingerprints of definitions and instructions in which nothing was found, kept in the store: a start does not scan again
 * what the same rules have found clean, nor load them before they are needed.
 */
export class ScannedTexts {
  readonly #options: ScannedTextsOptions;
  #rules: string;
  #known: Set<string>;
  #isSaved = true;
  #stopTimer: (() => void) | undefined;

  static async open(options: ScannedTextsOptions): Promise<ScannedTexts> {
    const { store, scanner } = options;
    // What cannot be read is scanned again.
    const text = scanner === undefined ? undefined : await store?.settings.get(CLEAN).catch(() => undefined);
    return new ScannedTexts(options, text);
  }

  private constructor(options: ScannedTextsOptions, text: string | undefined) {
    this.#options = options;
    this.#rules = this.#rulesOf(options.guard);
    this.#known = new Set(text?.startsWith(`${this.#rules}\n`) === true ? text.split("\n").slice(1) : []);
  }

  findingsOf<Found>(id: string, scan: () => readonly Found[]): readonly Found[] {
    if (this.#known.has(id)) return [];
    const found = scan();
    if (found.length === 0) this.#add(id);
    return found;
  }

  /** Other rules apply from now on. */
  forget(guard: GuardRules): void {
    this.#rules = this.#rulesOf(guard);
    this.#known = new Set();
  }

  async close(): Promise<void> {
    this.#stopTimer?.();
    await this.#save();
  }

  /** One line: whatever the config says may decide what is found. */
  #rulesOf(guard: GuardRules): string {
    return `${this.#options.scanner} ${JSON.stringify(guard)}`;
  }

  #add(id: string): void {
    if (this.#known.size >= MAX_CLEAN) this.#known.clear();
    this.#known.add(id);
    const { store, clock, scanner } = this.#options;
    if (store === undefined || scanner === undefined) return;
    this.#isSaved = false;
    this.#stopTimer ??= clock.after(SAVE_MS, () => void this.#save());
  }

  async #save(): Promise<void> {
    this.#stopTimer = undefined;
    if (this.#isSaved) return;
    this.#isSaved = true;
    await this.#options.store?.settings.set(CLEAN, [this.#rules, ...this.#known].join("\n")).catch(() => {});
  }
}

/** The search for shadowing compares all tools. While many servers connect, it may take this share of the time. */
const MAX_TIME_SHARE = 1 / 20;
/** Up to this many are compared at once. */
const MAX_IMMEDIATE_TOOLS = 100;
/** A hub whose servers are all known at its start answers its first client before it compares their tools. */
const MIN_WAIT_MS = 1000;

function isSerious({ severity }: Finding): boolean {
  return isAtLeast(severity, "medium");
}

interface ScannedDefinitionsOptions {
  readonly clock: Clock;
  readonly readers?: DefinitionWatchOptions["readers"];
  readonly maskOf?: DefinitionWatchOptions["maskOf"];
  /** Detectors have read definitions, and found something or quarantine ends. */
  readonly onDetected?: () => void;
  readonly clean?: Pick<ScannedTexts, "findingsOf">;
  /** Asked each time: the config may change. */
  readonly guard: () => Pick<GuardRules, "definitions" | "sensitivity">;
  readonly isTrusted: (source: string) => boolean;
  readonly onSuspicious: (capability: Capability, findings: readonly DefinitionFinding[]) => void;
  /** Findings that were not reported before, of any severity. */
  readonly onShadowing: (found: readonly Shadowing[]) => void;
}

/** Of nearly every definition. */
const NOTHING: readonly DefinitionFinding[] = [];

export class ScannedDefinitions {
  readonly #options: ScannedDefinitionsOptions;
  /** Definitions are immutable objects, so each is scanned once in its life. */
  #scanned = new WeakMap<object, readonly DefinitionFinding[]>();
  /** Definitions that a detector still reads. */
  readonly #read = new Set<object>();
  /** Definitions that a detector failed on, and when they are read again. */
  #failed = new WeakMap<object, number>();
  readonly #told = new Set<string>();
  #latest: readonly ToolCapability[] = [];
  /** Sources of the latest tools that are trusted. */
  #trusted: ReadonlySet<string> = new Set();
  #shadowing: readonly Shadowing[] = [];
  #lastTookMs = 0;
  #isLooking = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: ScannedDefinitionsOptions) {
    this.#options = options;
  }

  /** Call it with all listed capabilities whenever they change. */
  check(capabilities: readonly Capability[]): void {
    if (this.#options.guard().definitions === "ignore") return;
    const trusted = new Set<string>();
    for (const [source, listed] of Map.groupBy(capabilities, ({ origin }) => origin.source)) {
      if (this.#options.isTrusted(source)) trusted.add(source);
      else for (const capability of listed) this.#reportFindings(capability);
    }
    this.#trusted = trusted;
    this.#latest = capabilities.filter((capability): capability is ToolCapability => capability.kind === "tool");
    if (this.#latest.length <= MAX_IMMEDIATE_TOOLS) return this.#checkTogether();
    // It withholds nothing and only reports, so it can wait.
    const waitMs = Math.max(this.#lastTookMs / MAX_TIME_SHARE, MIN_WAIT_MS);
    this.#stopTimer ??= this.#options.clock.after(waitMs, () => this.#checkTogether());
  }

  /** The serious cases among the listed tools. */
  get shadowing(): readonly Shadowing[] {
    return this.#shadowing;
  }

  /** Other rules apply from now on. */
  forget(): void {
    this.#scanned = new WeakMap();
    this.#failed = new WeakMap();
  }

  close(): void {
    this.#stopTimer?.();
  }

  #reportFindings(capability: Capability): void {
    const findings = this.#scan(capability);
    if (findings.length === 0) return;
    this.#once(`${capability.kind} ${capability.name} ${capability.fingerprint}`, () =>
      this.#options.onSuspicious(capability, findings),
    );
  }

  #checkTogether(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const begun = performance.now();
    const news: Shadowing[] = [];
    // A trusted server may mention any tool. Of two similar names, either may be the fake.
    const found = findShadowingAmong(this.#latest).filter(
      ({ kind, tool, target }) =>
        !(this.#trusted.has(tool.server) && (kind === "mention" || this.#trusted.has(target.server))),
    );
    this.#shadowing = found.filter(({ severity }) => isAtLeast(severity, "medium"));
    for (const shadowing of found) {
      const { kind, severity, tool, target } = shadowing;
      this.#once(JSON.stringify([kind, severity, tool, target]), () => news.push(shadowing));
    }
    this.#lastTookMs = performance.now() - begun;
    if (news.length > 0) this.#options.onShadowing(news);
  }

  objectionTo(capability: Capability): Decision | undefined {
    if (this.#options.guard().definitions !== "quarantine") return undefined;
    const [worst] = this.findings(capability);
    if (worst === undefined) {
      if (!this.#read.has(capability.definition)) return undefined;
      const where = "a detector of guard.detectors is reading its definition; guard.definitions is quarantine";
      return { verdict: "deny", rule: { level: "tool", list: "definitions", pattern: "unread", where } };
    }
    const where = `its own definition (${plainPath(worst.path)}); guard.definitions is quarantine`;
    return { verdict: "deny", rule: { level: "tool", list: "definitions", pattern: worst.finding.code, where } };
  }

  findings(capability: Capability): readonly DefinitionFinding[] {
    return this.#options.isTrusted(capability.origin.source) ? [] : this.#scan(capability);
  }

  /** The serious findings only: definitions speak to models by their nature. */
  #scan({ definition, fingerprint: id, origin: { source } }: Capability): readonly DefinitionFinding[] {
    let findings = this.#scanned.get(definition);
    if (findings === undefined) {
      const { clean, guard, readers } = this.#options;
      const scan = (): DefinitionFinding[] =>
        scanDefinition(definition, guard().sensitivity).filter(({ finding }) => isSerious(finding));
      const detects = readers?.().detects("definition") === true;
      findings = clean === undefined || id === "" || detects ? scan() : clean.findingsOf(id, scan);
      if (findings.length === 0) findings = NOTHING;
      if (detects) this.#detect(source, definition, findings.length).catch(() => {});
      this.#scanned.set(definition, findings);
    } else if ((this.#failed.get(definition) ?? Infinity) <= this.#options.clock.now()) {
      this.#detect(source, definition, findings.length).catch(() => {});
    }
    return findings;
  }

  async #detect(source: string, definition: JsonObject, known: number): Promise<void> {
    const { readers, maskOf, guard, onDetected, clock } = this.#options;
    const scan = readers?.().scan;
    if (scan === undefined) return;
    const [scanned, failed] = [this.#scanned, this.#failed];
    // What was passed once is not withheld while it is read again.
    if (!failed.delete(definition)) this.#read.add(definition);
    let count = known;
    try {
      const { sensitivity } = guard();
      const onUnread = (): void => void failed.set(definition, clock.now() + RETRY_MS);
      const found = await detectInDefinition(scan, definition, { sensitivity, onUnread, mask: maskOf?.(source) });
      const serious = found.filter(({ finding }) => isSerious(finding));
      count = serious.length;
      scanned.set(definition, serious);
    } finally {
      this.#read.delete(definition);
    }
    if (scanned !== this.#scanned) return;
    // One look for all that were read together.
    if ((count !== known || guard().definitions === "quarantine") && !this.#isLooking) {
      this.#isLooking = true;
      queueMicrotask(() => {
        this.#isLooking = false;
        onDetected?.();
      });
    }
  }

  #once(key: string, tell: () => void): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    tell();
  }
}
