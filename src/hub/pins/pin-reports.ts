/** Reports about pins and definitions: the events, their wording, and where they go. */
import type { Emitter } from "../../base/emitter.ts";
import { type DiffBudget, renderDiff } from "./definition-diff.ts";
import type { Offered, PinComparison, PinKind, PinState } from "./pin-comparison.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { HubEvents } from "../hub-events.ts";

export type PinEvent =
  /** Pinned as offered. `later`: the server had pins already, so no one has looked at these. */
  | { readonly type: "recorded"; readonly server: string; readonly pins: readonly PinName[]; readonly later: boolean }
  /** New in a server that was pinned before, and not pinned. Once for each new definition. */
  | { readonly type: "held"; readonly server: string; readonly pins: readonly PinName[] }
  /** Once for each new definition. */
  | { readonly type: "changed"; readonly pin: PinName; readonly diff: readonly string[] }
  /** Of these resources only the first are pinned. */
  | { readonly type: "too-many"; readonly server: string; readonly count: number; readonly most: number }
  /** A pinned definition contains a secret, which is masked. */
  | { readonly type: "masked"; readonly file: string; readonly server: string; readonly pins: readonly PinName[] }
  | { readonly type: "approved"; readonly server: string; readonly pins: readonly PinName[] }
  /** The file was removed. Its pins still apply and are written again. */
  | { readonly type: "removed"; readonly file: string; readonly pins: number }
  /** Another process approved or reset pins, or the file was edited. */
  | { readonly type: "edited"; readonly changed: readonly PinName[]; readonly forgotten: readonly PinName[] }
  /** Verdicts may have changed: pins were approved, reset or edited. */
  | { readonly type: "updated" }
  | { readonly type: "problem"; readonly message: string; readonly hint: string };

export interface PinName {
  readonly server: string;
  readonly kind: PinKind;
  /** The server's own name for it, whatever its kind: when only tools were pinned, it was always one. */
  readonly tool: string;
}

export interface PinEntry extends PinName {
  /** unknown: the server has not been asked. */
  readonly state: PinState | "unknown";
  readonly fingerprint: string;
  /** Empty for what is not pinned. */
  readonly pinnedAt: string;
}

export interface PinDiff extends PinName {
  readonly state: "changed" | "new";
  /** null for what was not pinned before. */
  readonly before: string | null;
  readonly after: string;
  readonly diff: readonly string[];
}

export function pinName(server: string, { kind, name }: Pick<Offered, "kind" | "name">): PinName {
  return { server, kind, tool: name };
}

/** `tool read`; instructions have no name. */
export function pinTitle({ kind, tool }: Pick<PinName, "kind" | "tool">): string {
  return kind === "instructions" ? "instructions" : `${kind} ${tool}`;
}

/** For a record whose origin has the name: said only of what is not a tool. */
export function kindDetail(kind: PinKind): { readonly kind?: PinKind } {
  return kind === "tool" ? {} : { kind };
}

/** In a message or a record; the rest is counted. */
export const MAX_NAMED = 20;

/** `read, prompt greet and 3 more`: a tool by its name alone. */
export function describeNames(pins: readonly PinName[]): string {
  const shown = pins.slice(0, MAX_NAMED).map((pin) => (pin.kind === "tool" ? pin.tool : pinTitle(pin)));
  return `${shown.join(", ")}${pins.length > shown.length ? ` and ${pins.length - shown.length} more` : ""}`;
}

/** `2 tools, 1 prompt`. */
export function describeCounts(pins: readonly PinName[]): string {
  const counts = Map.groupBy(pins, ({ kind }) => kind);
  const words = [...counts].map(([kind, { length }]) =>
    kind === "instructions" ? "instructions" : `${length} ${kind}${length === 1 ? "" : "s"}`,
  );
  return words.join(", ");
}

/** @param budget Of the report that it is part of. */
export function pinDiff(
  server: string,
  compared: Extract<PinComparison, { state: "changed" | "new" }>,
  budget?: DiffBudget,
): PinDiff {
  const { state, after } = compared;
  const before = state === "new" ? undefined : compared.pin;
  return {
    ...pinName(server, after),
    state,
    before: before?.fingerprint ?? null,
    after: after.fingerprint,
    // Whoever approves something new must see all of it.
    diff: renderDiff(before?.definition ?? {}, after.definition, budget),
  };
}

export interface DefinitionReportsOptions {
  readonly events: Emitter<HubEvents>;
  readonly audit: Pick<AuditLog, "event">;
}

interface Origin {
  readonly source: string;
  readonly name: string;
}

/** The overview lists what they are about as findings, for as long as it is listed. */
const FINDING_EVENTS: ReadonlySet<string> = new Set([
  "definition.suspicious",
  "definition.shadowing",
  "instructions.suspicious",
]);

/** Writes findings about definitions to the audit log, and important ones as warnings. */
export class DefinitionReports {
  readonly #options: DefinitionReportsOptions;

  constructor(options: DefinitionReportsOptions) {
    this.#options = options;
  }

  warn(event: string, origin: Origin, message: string, details: Record<string, unknown>): void {
    const isFinding = FINDING_EVENTS.has(event);
    this.#options.events.emit("warning", { server: origin.source, message, ...(isFinding ? { isFinding } : {}) });
    this.record(event, origin, details);
  }

  record(event: string, origin: Origin | null, details: Record<string, unknown>): void {
    this.#options.audit.event({ event, origin, details });
  }
}

interface PinReportsOptions extends DefinitionReportsOptions {
  readonly onVisibilityChange: () => void;
}

export class PinReports {
  readonly #options: PinReportsOptions;
  readonly #reports: DefinitionReports;
  readonly #withNewResources = new Set<string>();

  constructor(options: PinReportsOptions) {
    this.#options = options;
    this.#reports = new DefinitionReports(options);
  }

  take(event: PinEvent): void {
    this.#tell(event);
    this.#options.events.emit("pins", {});
  }

  #tell(event: PinEvent): void {
    const { events, onVisibilityChange } = this.#options;
    switch (event.type) {
      case "recorded":
        if (!event.later) return;
        return this.#arrived("pin.recorded", event, "They are pinned as offered now, without a review.");
      case "held":
        return this.#arrived(
          "pin.new",
          event,
          "They are held until approved: toolcrib pins diff shows them, toolcrib pins approve accepts them.",
        );
      case "too-many": {
        const { server, count, most } = event;
        const message = `The server lists ${count} resources. The first ${most} are pinned; the others count as new. If its resources come and go, set "pinResources": false in its entry.`;
        return events.emit("warning", { server, message });
      }
      case "masked": {
        const { server, file, pins } = event;
        const message = `The server's definitions contain a secret (${describeNames(pins)}). It is masked in ${file}, which only you can read now. Find out why the server publishes it.`;
        const origin = { source: server, name: originName(pins) };
        return this.#reports.warn("pin.masked", origin, message, { ...detailsOf(pins), file });
      }
      case "removed": {
        const message = `${event.file} was removed. Its ${event.pins} pins still apply and are written again. Use toolcrib pins reset to forget pins.`;
        events.emit("warning", { message });
        return this.#reports.record("pin.file_removed", null, { file: event.file, tools: event.pins });
      }
      case "edited": {
        const { changed, forgotten } = event;
        const named = { changed: changed.slice(0, MAX_NAMED), forgotten: forgotten.slice(0, MAX_NAMED) };
        return this.#reports.record("pin.file_changed", null, { ...named, count: changed.length + forgotten.length });
      }
      case "approved":
        return;
      case "updated":
        return onVisibilityChange();
      case "problem":
        return events.emit("warning", { message: `${event.message} ${event.hint}` });
      case "changed": {
        const { pin, diff } = event;
        const subject =
          pin.kind === "tool"
            ? `The definition of ${pin.tool} has`
            : pin.kind === "instructions"
              ? "The server's instructions have"
              : `The definition of the ${pinTitle(pin)} has`;
        const message = `${subject} changed since it was first seen:\n${diff.join("\n")}`;
        const origin = { source: pin.server, name: pin.tool };
        return this.#reports.warn("pin.changed", origin, message, { ...kindDetail(pin.kind), diff: diff.slice(0, 20) });
      }
    }
  }

  /** Resources may come all day: after the first report of a server the others are in the audit log alone. */
  #arrived(name: string, { server, pins }: Extract<PinEvent, { type: "recorded" | "held" }>, what: string): void {
    const origin = { source: server, name: originName(pins) };
    const areResources = pins.every(({ kind }) => kind === "resource");
    if (areResources && this.#withNewResources.has(server)) return this.#reports.record(name, origin, detailsOf(pins));
    if (areResources) this.#withNewResources.add(server);
    const message = `New since this server was first seen: ${describeNames(pins)}. ${what}`;
    this.#reports.warn(name, origin, message, detailsOf(pins));
  }
}

/** Of several the kinds and numbers. */
function originName(pins: readonly PinName[]): string {
  const [only, another] = pins;
  return only !== undefined && another === undefined ? only.tool : describeCounts(pins);
}

function detailsOf(pins: readonly PinName[]): Record<string, unknown> {
  const shown = pins.slice(0, MAX_NAMED);
  const kinds = shown.some(({ kind }) => kind !== "tool") ? { kinds: shown.map(({ kind }) => kind) } : {};
  return { tools: shown.map(({ tool }) => tool), ...kinds, count: pins.length };
}
