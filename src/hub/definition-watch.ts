/** Looks at every definition as it is discovered: is it what it was, and does it read like an attack? */
import type { Catalog } from "../catalog/catalog.ts";
import type { CatalogChange } from "../catalog/change.ts";
import { KINDS } from "../catalog/source-view.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { scanInstructions } from "../guard/definitions/scan-definition.ts";
import { describeShadowing, type Shadowing } from "../guard/definitions/shadowing.ts";
import type { PinMode } from "../guard/pins/verdict.ts";
import type { Clock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import { type Finding, isAtLeast } from "../model/finding.ts";
import type { AuditLog } from "../telemetry/audit/log.ts";
import type { HubEvents } from "./events.ts";
import type { Objection } from "./gate.ts";
import { pinFileFor } from "./pins/pin-file.ts";
import { type PinEvent, Pins } from "./pins/pins.ts";
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
  readonly audit: AuditLog;
  readonly isTrusted: (source: string) => boolean;
  /** What sessions may see changed although the catalog did not. */
  readonly onVisibilityChange: () => void;
}

export class DefinitionWatch {
  readonly objections: readonly Objection[];
  readonly #options: DefinitionWatchOptions;
  readonly #scanned: ScannedDefinitions;
  readonly #scannedTexts = new Map<string, readonly Finding[]>();
  #config: LoadedConfig;
  #isTrusted: (source: string) => boolean;
  #pins: Pins;
  /** Pins that were replaced and still write. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: DefinitionWatchOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#isTrusted = options.isTrusted;
    this.#pins = this.#makePins();
    this.#scanned = new ScannedDefinitions({
      mode: () => this.#config.config.guard.definitions,
      isTrusted: (source) => this.#isTrusted(source),
      onSuspicious: ({ kind, origin }, findings) => {
        const found = findings.map(({ path, finding }) => `${finding.code} in ${path}: ${finding.excerpt}`);
        this.#report(
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
      (capability) => this.#pins.objectionTo(capability),
      (capability) => this.#scanned.objectionTo(capability),
    ];
  }

  /** From now on every version of the catalog is looked at, before anybody else hears of it. */
  start(): void {
    this.#options.catalog.on("change", ({ kinds }) => this.#look(kinds));
    this.#pins.watch();
  }

  /** Another config: what is listed is looked at again with its eyes. What was told of is not told again. */
  configure(config: LoadedConfig, isTrusted: (source: string) => boolean): void {
    this.#config = config;
    this.#isTrusted = isTrusted;
    const before = this.#pins;
    const { file, mode } = this.#pinOptions();
    if (file !== before.file || mode !== before.mode) {
      this.#writing = Promise.all([this.#writing, before.close()]);
      this.#pins = this.#makePins();
      this.#pins.watch();
    }
    this.#look();
  }

  /** A server's advice for its use is read by models too. */
  checkInstructions(server: string, text: string | null | undefined): void {
    const serious = this.#suspicions(server, text);
    if (serious.length === 0) return;
    const found = serious.map(({ code, excerpt }) => `${code}: ${excerpt}`).join("; ");
    this.#report(
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
    return this.#config.config.guard.definitions === "quarantine" && this.#suspicions(server, text).length > 0;
  }

  async close(): Promise<void> {
    await Promise.all([this.#writing, this.#pins.close()]);
  }

  #look(kinds: CatalogChange["kinds"] = KINDS): void {
    const { tools, prompts, resources, templates } = this.#options.catalog.snapshot();
    if (kinds.includes("tool")) this.#pins.checkAll(tools);
    this.#scanned.check([...tools, ...prompts, ...resources, ...templates]);
  }

  #pinOptions(): { readonly file: string; readonly mode: PinMode } {
    const { file, config } = this.#config;
    return {
      file: pinFileFor(file, this.#options.home),
      // A config in code has no file that pins could stand beside; several programs would share one by accident.
      mode: config.guard.pins ?? (file === null ? "off" : "warn"),
    };
  }

  #makePins(): Pins {
    return new Pins({
      ...this.#pinOptions(),
      clock: this.#options.clock,
      onEvent: (event) => this.#pinned(event),
    });
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
      this.#report("definition.shadowing", originOf(shadowing), describeShadowing(shadowing), { ...shadowing });
    }
    for (const shadowing of slight.slice(0, MOST_NAMED)) {
      this.#record("definition.shadowing", originOf(shadowing), { ...shadowing });
    }
    // Two servers of one kind have dozens; `toolcrib doctor` shows them all.
    if (slight.length > MOST_NAMED) {
      this.#record("definition.shadowing", null, { severity: "low", omitted: slight.length - MOST_NAMED });
    }
  }

  #pinned(event: PinEvent): void {
    const { events, onVisibilityChange } = this.#options;
    switch (event.type) {
      case "recorded": {
        if (!event.later) return;
        const { server, tools } = event;
        const shown = tools.slice(0, MOST_NAMED);
        const more = tools.length > shown.length ? ` and ${tools.length - shown.length} more` : "";
        const message = `New since this server was first seen: ${shown.join(", ")}${more}. Pinned as offered now, without anybody having looked.`;
        const name = tools.length === 1 ? (tools[0] ?? "") : `${tools.length} tools`;
        return this.#report("pin.recorded", { source: server, name }, message, { tools: shown, count: tools.length });
      }
      case "removed": {
        const message = `${event.file} was removed while in use. Its ${event.tools} pins still hold and are written again; toolcrib pins reset forgets pins.`;
        events.emit("warning", { message });
        return this.#record("pin.file_removed", null, { file: event.file, tools: event.tools });
      }
      case "edited": {
        const { changed, forgotten } = event;
        const named = { changed: changed.slice(0, MOST_NAMED), forgotten: forgotten.slice(0, MOST_NAMED) };
        return this.#record("pin.file_changed", null, { ...named, count: changed.length + forgotten.length });
      }
      case "approved":
        return;
      case "updated":
        return onVisibilityChange();
      case "problem":
        return events.emit("warning", { message: `${event.message} ${event.hint}` });
      case "changed": {
        const { server, tool, diff } = event;
        const message = `The definition of ${tool} has changed since it was first seen:\n${diff.join("\n")}`;
        return this.#report("pin.changed", { source: server, name: tool }, message, { diff: diff.slice(0, 20) });
      }
    }
  }

  #report(
    event: string,
    origin: { source: string; name: string },
    message: string,
    details: Record<string, unknown>,
  ): void {
    this.#options.events.emit("warning", { server: origin.source, message });
    this.#record(event, origin, details);
  }

  #record(event: string, origin: { source: string; name: string } | null, details: Record<string, unknown>): void {
    const { audit, clock } = this.#options;
    audit.event({ time: new Date(clock.now()).toISOString(), event, origin, details });
  }
}

function originOf({ tool }: Shadowing): { source: string; name: string } {
  return { source: tool.server, name: tool.name };
}
