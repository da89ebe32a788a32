/** Looks at every definition as it is discovered: is it what it was, and does it read like an attack? */
import type { Catalog } from "../catalog/catalog.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { scanInstructions } from "../guard/definitions/scan-definition.ts";
import { describeShadowing, type Shadowing } from "../guard/definitions/shadowing.ts";
import type { Capability } from "../model/capability.ts";
import type { Clock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import { type Finding, isAtLeast } from "../model/finding.ts";
import type { Store } from "../store/store.ts";
import type { AuditLog } from "../telemetry/audit/log.ts";
import type { HubEvents } from "./events.ts";
import type { Objection } from "./gate.ts";
import { DefinitionReports } from "./definition-reports.ts";
import { openPins, partOf, pinPlace } from "./pins/open-pins.ts";
import type { PinEvent } from "./pins/pin-event.ts";
import { PinReports } from "./pins/pin-reports.ts";
import type { Pins } from "./pins/pins.ts";
import { ScannedDefinitions } from "./scanned-definitions.ts";

/** In a message or a record; the rest is counted. */
const MOST_NAMED = 20;
/** Texts whose findings are remembered; with a connection for each user there is one for each. */
const MOST_TEXTS = 200;

interface DefinitionWatchOptions {
  readonly config: LoadedConfig;
  readonly home: string;
  readonly clock: Clock;
  readonly catalog: Catalog;
  readonly events: Emitter<HubEvents>;
  readonly audit: Pick<AuditLog, "event">;
  readonly store: Store | undefined;
  readonly isTrusted: (source: string) => boolean;
  /** The advice of a server that is connected, null if it gives none. */
  readonly instructionsOf: (server: string) => string | null;
  /** False for a server whose resources come and go. */
  readonly pinsResources: (server: string) => boolean;
  readonly mask: <Value>(value: Value) => Value;
  /** Whether a session brought it: what comes and goes with a session is not pinned. */
  readonly isBrought: (source: string) => boolean;
  /** What sessions may see changed although the catalog did not. */
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
  /** Those of a config that is about to be taken over. */
  #prepared: Pins | undefined;
  /** Pins that were replaced and still write. */
  #writing: Promise<unknown> = Promise.resolve();

  /** Reads the pins first, so that they hold for the first definition. */
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
        const found = findings.map(({ path, finding }) => `${finding.code} in ${path}: ${finding.excerpt}`);
        this.#reports.warn(
          "definition.suspicious",
          origin,
          `The definition of the ${kind} ${origin.name} looks like an attack: ${found.join("; ")}`,
          {
            findings: findings.map(({ path, finding }) => ({ path, code: finding.code, severity: finding.severity })),
          },
        );
      },
      onShadowing: (found) => this.#shadowed(found),
    });
    this.objections = [
      (capability) => (options.isBrought(capability.origin.source) ? undefined : this.#pins.objectionTo(capability)),
      (capability) => this.#scanned.objectionTo(capability),
    ];
  }

  /** From now on every version of the catalog is looked at, before anybody else hears of it. */
  start(): void {
    this.#options.catalog.on("change", () => this.#look());
    this.#pins.watch();
  }

  /** Reads the pins of a config that `configure` is going to be called with, where they are others than those of now. */
  async prepare(config: LoadedConfig): Promise<void> {
    await this.#prepared?.close();
    this.#prepared = undefined;
    if (isOf(this.#pins, config, this.#options.home)) return;
    // The same file in another mode: what is on its way into it must be there before it is read.
    await this.#pins.settled();
    this.#prepared = await openPinsOf(this.#options, config);
  }

  /** Those that hold now. */
  get pins(): Pins {
    return this.#pins;
  }

  /** Another config: what is listed is looked at again with its eyes. What was told of is not told again. */
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

  /** What in a definition reads like an attack. For what is not in the hub's catalog; it is recorded, and told to nobody. */
  suspicion(capability: Capability): string | undefined {
    if (this.#config.config.guard.definitions === "ignore") return undefined;
    const found = this.#scanned.findings(capability);
    if (found.length === 0) return undefined;
    const findings = found.map(({ path, finding }) => ({ path, code: finding.code, severity: finding.severity }));
    if (!this.#recorded.has(capability.definition)) {
      this.#recorded.add(capability.definition);
      this.#reports.record("definition.suspicious", capability.origin, { findings });
    }
    return found.map(({ path, finding }) => `${finding.code} in ${path}: ${finding.excerpt}`).join("; ");
  }

  /** A server's advice for its use is read by models too. It may be other than before while its lists are the same. */
  checkInstructions(server: string, text: string | null | undefined): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    this.#checkPins(
      [...tools, ...prompts, ...resources, ...templates].filter(({ origin }) => origin.source === server),
    );
    const serious = this.#suspicions(server, text);
    if (serious.length === 0) return;
    const found = serious.map(({ code, excerpt }) => `${code}: ${excerpt}`).join("; ");
    this.#reports.warn(
      "instructions.suspicious",
      { source: server, name: "instructions" },
      `The server's instructions look like an attack: ${found}`,
      {
        findings: serious.map(({ code, severity }) => ({ code, severity })),
      },
    );
  }

  /** Whether a server's advice is kept from clients. */
  withholdsInstructions(server: string, text: string): boolean {
    if (!this.#options.isBrought(server) && this.#pins.withholds(server, text)) return true;
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
      if (this.#scannedTexts.size >= MOST_TEXTS) this.#scannedTexts.clear();
      this.#scannedTexts.set(text, serious);
    }
    return serious;
  }

  /** Honest servers have tools of the same name, and speak of tools they work with: that is recorded and not warned of. */
  #shadowed(found: readonly Shadowing[]): void {
    const { serious = [], slight = [] } = Object.groupBy(found, ({ severity }) =>
      isAtLeast(severity, "medium") ? "serious" : "slight",
    );
    for (const shadowing of serious) {
      this.#reports.warn("definition.shadowing", originOf(shadowing), describeShadowing(shadowing), { ...shadowing });
    }
    for (const shadowing of slight.slice(0, MOST_NAMED)) {
      this.#reports.record("definition.shadowing", originOf(shadowing), { ...shadowing });
    }
    // Two servers of one kind have dozens; `toolcrib doctor` shows them all.
    if (slight.length > MOST_NAMED) {
      this.#reports.record("definition.shadowing", null, { severity: "low", omitted: slight.length - MOST_NAMED });
    }
  }
}

function openPinsOf(options: DefinitionWatchOptions, config: LoadedConfig): Promise<Pins> {
  const reports = new PinReports(options);
  const { home, store, clock, pinsResources, mask } = options;
  const onEvent = (event: PinEvent): void => reports.take(event);
  return openPins(pinPlace(config, home), { store, clock, pinsResources, mask, onEvent });
}

function isOf(pins: Pins, config: LoadedConfig, home: string): boolean {
  const place = pinPlace(config, home);
  return pins.file === place.file && pins.mode === place.mode && pins.part === partOf(place);
}

function originOf({ tool }: Shadowing): { source: string; name: string } {
  return { source: tool.server, name: tool.name };
}
