/** Looks at every definition as it is discovered: is it what it was, and does it read like an attack? */
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { type DefinitionFinding, scanDefinition, scanInstructions } from "../../guard/scan-definition.ts";
import {
  describeShadowing,
  findShadowing,
  type ListedTool,
  listedTool,
  type Shadowing,
} from "../../guard/shadowing.ts";
import type { Capability, ToolCapability } from "../../model/capability.ts";
import type { GuardRules } from "../../model/config.ts";
import type { Decision } from "../../model/decision.ts";
import { type Finding, isAtLeast } from "../../model/finding.ts";
import type { Store } from "../../store/store.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { Objection } from "../call/access-control.ts";
import type { HubEvents } from "../hub-events.ts";
import { openPins, partOf, pinLocation } from "./open-pins.ts";
import { DefinitionReports, type PinEvent, PinReports } from "./pin-reports.ts";
import type { Pins } from "./pins.ts";

/** In a message or a record; the rest is counted. */
const MAX_REPORTED = 20;
/** Texts whose findings are remembered; with a connection for each user there is one for each. */
const MAX_SCANNED_TEXTS = 200;

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
  /** Whether a session brought it: what comes and goes with a session is not pinned. */
  readonly isMounted: (source: string) => boolean;
  /** Visibility changed although the catalog did not. */
  readonly onVisibilityChange: () => void;
}

export class DefinitionWatch {
  readonly objections: readonly Objection[];
  readonly #options: DefinitionWatchOptions;
  readonly #scanned: ScannedDefinitions;
  /** Definitions that sessions brought. */
  readonly #recorded = new WeakSet<object>();
  readonly #scannedTexts = new Map<string, readonly Finding[]>();
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
    return new DefinitionWatch(options, await openPinsOf(options, options.config));
  }

  private constructor(options: DefinitionWatchOptions, pins: Pins) {
    this.#options = options;
    this.#reports = new DefinitionReports(options);
    this.#config = options.config;
    this.#isTrusted = options.isTrusted;
    this.#pins = pins;
    this.#scanned = new ScannedDefinitions({
      clock: options.clock,
      mode: () => this.#config.config.guard.definitions,
      isTrusted: (source) => this.#isTrusted(source),
      onSuspicious: ({ kind, origin }, findings) => {
        const message = `The definition of the ${kind} ${origin.name} looks like an attack: ${excerpts(findings)}`;
        this.#reports.warn("definition.suspicious", origin, message, { findings: recorded(findings) });
      },
      onShadowing: (found) => this.#shadowed(found),
    });
    this.objections = [
      (capability) => {
        const objection = this.#pins.objectionTo(capability);
        return objection !== undefined && options.isMounted(capability.origin.source) ? undefined : objection;
      },
      (capability) => this.#scanned.objectionTo(capability),
    ];
  }

  /** From now on every version of the catalog is checked before other listeners get it. */
  start(): void {
    this.#options.catalog.on("change", () => this.#look());
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

  /** Checks the listed definitions again with another config. Nothing is reported twice. */
  configure(config: LoadedConfig, isTrusted: (source: string) => boolean): void {
    this.#config = config;
    this.#isTrusted = isTrusted;
    const before = this.#pins;
    const prepared = this.#prepared;
    if (prepared !== undefined && isOf(prepared, config, this.#options.home)) {
      this.#writing = Promise.all([this.#writing, before.close()]);
      this.#pins = prepared;
      this.#prepared = undefined;
      this.#pins.watch();
    }
    this.#look();
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
    return excerpts(found);
  }

  /** Models read a server's instructions too. They may change while its lists stay the same. */
  checkInstructions(server: string, text: string | null | undefined): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    this.#checkPins(
      [...tools, ...prompts, ...resources, ...templates].filter(({ origin }) => origin.source === server),
    );
    const serious = this.#suspicions(server, text);
    if (serious.length === 0) return;
    const found = serious.map(({ code, excerpt }) => `${code}: ${excerpt}`).join("; ");
    const origin = { source: server, name: "instructions" };
    const findings = serious.map(({ code, severity }) => ({ code, severity }));
    const message = `The server's instructions look like an attack: ${found}`;
    this.#reports.warn("instructions.suspicious", origin, message, { findings });
  }

  /** Whether a server's instructions are withheld from clients. */
  withholdsInstructions(server: string, text: string): boolean {
    if (!this.#options.isMounted(server) && this.#pins.withholds(server, text)) return true;
    return this.#config.config.guard.definitions === "quarantine" && this.#suspicions(server, text).length > 0;
  }

  async close(): Promise<void> {
    this.#scanned.close();
    await Promise.all([this.#writing, this.#prepared?.close(), this.#pins.close()]);
  }

  #look(): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    const all = [...tools, ...prompts, ...resources, ...templates];
    this.#checkPins(all);
    this.#scanned.check(all);
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
      serious = scanInstructions(text).filter(({ severity }) => isAtLeast(severity, "medium"));
      if (this.#scannedTexts.size >= MAX_SCANNED_TEXTS) this.#scannedTexts.clear();
      this.#scannedTexts.set(text, serious);
    }
    return serious;
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

function excerpts(findings: readonly DefinitionFinding[]): string {
  return findings.map(({ path, finding }) => `${finding.code} in ${path}: ${finding.excerpt}`).join("; ");
}

/** Without excerpts, which may be an attack on whoever reads the audit log. */
function recorded(findings: readonly DefinitionFinding[]): Record<string, unknown>[] {
  return findings.map(({ path, finding: { code, severity } }) => ({ path, code, severity }));
}

function originOf({ tool }: Shadowing): { source: string; name: string } {
  return { source: tool.server, name: tool.name };
}

/** The search for shadowing compares all tools. While many servers connect, it may take this share of the time. */
const MAX_TIME_SHARE = 1 / 20;
/** Up to this many are scanned at once. */
const MAX_IMMEDIATE_TOOLS = 1000;

interface ScannedDefinitionsOptions {
  readonly clock: Clock;
  /** Asked each time: the config may change. */
  readonly mode: () => GuardRules["definitions"];
  readonly isTrusted: (source: string) => boolean;
  readonly onSuspicious: (capability: Capability, findings: readonly DefinitionFinding[]) => void;
  /** Findings that were not reported before, of any severity. */
  readonly onShadowing: (found: readonly Shadowing[]) => void;
}

export class ScannedDefinitions {
  readonly #options: ScannedDefinitionsOptions;
  /** Definitions are immutable objects, so each is scanned once in its life. */
  readonly #scanned = new WeakMap<object, readonly DefinitionFinding[]>();
  readonly #tools = new WeakMap<object, ListedTool>();
  readonly #told = new Set<string>();
  #latest: readonly ToolCapability[] = [];
  #lastTookMs = 0;
  #stopTimer: (() => void) | undefined;

  constructor(options: ScannedDefinitionsOptions) {
    this.#options = options;
  }

  /** Call it with all listed capabilities whenever they change. */
  check(capabilities: readonly Capability[]): void {
    if (this.#options.mode() === "ignore") return;
    for (const capability of capabilities) {
      const findings = this.#scan(capability);
      if (findings.length > 0)
        this.#once(`${capability.kind} ${capability.name} ${capability.fingerprint}`, () =>
          this.#options.onSuspicious(capability, findings),
        );
    }
    this.#latest = capabilities.filter((capability): capability is ToolCapability => capability.kind === "tool");
    if (this.#latest.length <= MAX_IMMEDIATE_TOOLS || this.#lastTookMs === 0) this.#checkTogether();
    // It withholds nothing and only reports, so it can wait.
    else this.#stopTimer ??= this.#options.clock.after(this.#lastTookMs / MAX_TIME_SHARE, () => this.#checkTogether());
  }

  close(): void {
    this.#stopTimer?.();
  }

  #checkTogether(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const begun = performance.now();
    const news: Shadowing[] = [];
    for (const shadowing of findShadowing(this.#latest.map((tool) => this.#listed(tool)))) {
      const { kind, severity, tool, target } = shadowing;
      // A trusted server may mention any tool. Of two similar names, either may be the fake.
      if (this.#options.isTrusted(tool.server) && (kind === "mention" || this.#options.isTrusted(target.server)))
        continue;
      this.#once(JSON.stringify([kind, severity, tool, target]), () => news.push(shadowing));
    }
    this.#lastTookMs = performance.now() - begun;
    if (news.length > 0) this.#options.onShadowing(news);
  }

  objectionTo(capability: Capability): Decision | undefined {
    if (this.#options.mode() !== "quarantine") return undefined;
    const [worst] = this.#scan(capability);
    if (worst === undefined) return undefined;
    const where = `its own definition (${worst.path}); guard.definitions is quarantine`;
    return { verdict: "deny", rule: { level: "tool", list: "definitions", pattern: worst.finding.code, where } };
  }

  findings(capability: Capability): readonly DefinitionFinding[] {
    return this.#scan(capability);
  }

  /** The serious findings only: definitions speak to models by their nature. */
  #scan({ definition, origin }: Capability): readonly DefinitionFinding[] {
    if (this.#options.isTrusted(origin.source)) return [];
    let findings = this.#scanned.get(definition);
    if (findings === undefined) {
      findings = scanDefinition(definition).filter(({ finding }) => isAtLeast(finding.severity, "medium"));
      this.#scanned.set(definition, findings);
    }
    return findings;
  }

  /** The catalog changes often, definitions do not. */
  #listed(tool: ToolCapability): ListedTool {
    const known = this.#tools.get(tool.definition);
    if (known?.publicName === tool.name) return known;
    const made = listedTool(tool);
    this.#tools.set(tool.definition, made);
    return made;
  }

  #once(key: string, tell: () => void): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    tell();
  }
}
