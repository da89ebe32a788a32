/** What an operator sees and does about pins: `hub.pins`. */
import type { Clock } from "../../base/clock.ts";
import type { PinInfo } from "../../contract/catalog-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import { DefinitionReports, type DefinitionReportsOptions } from "./definition-reports.ts";
import {
  describeCounts,
  describeNames,
  kindDetail,
  MAX_NAMED,
  type PinEvent,
  type PinName,
  pinTitle,
} from "./pin-event.ts";
import type { PinChoice, Pins } from "./pins.ts";

interface HubPinsOptions {
  /** Those that hold now. */
  readonly pins: () => Pins;
  /** Whether there is a server of this id now. */
  readonly isThere: (server: string) => boolean;
  readonly clock: Clock;
  readonly audit: Pick<AuditLog, "event">;
}

/** Who did it, for the audit log. */
export interface ChangedBy {
  readonly door?: string;
  readonly user?: string | null;
  readonly session?: string | null;
}

interface PinFilter {
  readonly server?: string | undefined;
  readonly state?: PinInfo["state"] | undefined;
}

export class HubPins {
  readonly #options: HubPinsOptions;

  constructor(options: HubPinsOptions) {
    this.#options = options;
  }

  /** Why the pins cannot be used, if they cannot. */
  get problem(): ToolcribError | undefined {
    return this.#pins.problem;
  }

  /** By server, kind and name; what changed, or is new and held, says what is different. */
  list({ server, state }: PinFilter = {}): PinInfo[] {
    const diffs = new Map(this.#pins.diff(server).map((each) => [keyOf(each), each.diff]));
    return this.#pins
      .list()
      .map((pin) => (this.#options.isThere(pin.server) ? pin : { ...pin, state: "gone" as const }))
      .filter((pin) => (server === undefined || pin.server === server) && (state === undefined || pin.state === state))
      .map((pin): PinInfo => {
        const diff = pin.state === "changed" || pin.state === "new" ? diffs.get(keyOf(pin)) : undefined;
        return { ...pin, ...(diff === undefined ? {} : { diff: [...diff] }) };
      })
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  /** The state of a tool's pin, by its source and its own name there. */
  stateOf(source: string, tool: string): PinInfo["state"] {
    return this.#pins.stateOf(source, tool);
  }

  /** Pins what the server offers now: one tool or other thing, or all that changed or is new. */
  async approve(server: string, thing?: string | PinChoice, by: ChangedBy = {}): Promise<PinName[]> {
    this.#assertUsed(server);
    const approved = await this.#pins.approve(server, choiceOf(thing));
    return approved.map(({ server: _server, kind, tool, before, after }) => {
      const name = { server, kind, tool };
      this.#record("pin.approved", name, by, { before, after });
      return name;
    });
  }

  /**
   * Forgets one pin, those of a server, or all. A server without pins counts as seen for the first time; one thing of a
   * server that has other pins counts as new.
   */
  async reset(server?: string, thing?: string | PinChoice, by: ChangedBy = {}): Promise<PinName[]> {
    this.#assertUsed(server);
    const removed = await this.#pins.reset(server, choiceOf(thing));
    for (const name of removed) this.#record("pin.reset", name, by);
    return removed;
  }

  get #pins(): Pins {
    return this.#options.pins();
  }

  #assertUsed(server: string | undefined): void {
    const pins = this.#pins;
    if (pins.mode === "off") {
      throw new ToolcribError("invalid_config", "Nothing is pinned here: guard.pins is off.", {
        hint: 'Set guard.pins to "warn", "ask" or "block" in the config.',
      });
    }
    if (server !== undefined && !pins.knows(server)) {
      throw new ToolcribError("not_found", `Nothing is pinned of a server "${server}", and it offers nothing now.`);
    }
  }

  #record(event: string, { server, kind, tool }: PinName, by: ChangedBy, more: Record<string, unknown> = {}): void {
    const { audit, clock } = this.#options;
    const time = new Date(clock.now()).toISOString();
    audit.event({
      time,
      event,
      ...by,
      origin: { source: server, name: tool },
      details: { ...kindDetail(kind), ...more },
    });
  }
}

function keyOf({ server, kind, tool }: PinName): string {
  return JSON.stringify([server, kind, tool]);
}

/** A name alone is that of a tool. */
function choiceOf(thing: string | PinChoice | undefined): PinChoice | undefined {
  return typeof thing === "string" ? { kind: "tool", name: thing } : thing;
}

/** What a hub says of its pins: to whoever listens, and in the audit log. */

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
        return this.#arrived("pin.recorded", event, "Pinned as offered now, before anyone has looked at them.");
      case "held":
        return this.#arrived(
          "pin.new",
          event,
          "Held until approved: toolcrib pins diff shows them, toolcrib pins approve accepts them.",
        );
      case "too-many": {
        const { server, count, most } = event;
        const message = `The server lists ${count} resources, and the first ${most} are pinned; the others count as new. If its resources come and go, set "pinResources": false in its entry.`;
        return events.emit("warning", { server, message });
      }
      case "masked": {
        const { server, file, pins } = event;
        const message = `A secret is in what the server says of itself (${describeNames(pins)}). It is masked in ${file}, which only you may read from now on. Find out why the server tells it.`;
        const origin = { source: server, name: originName(pins) };
        return this.#reports.warn("pin.masked", origin, message, { ...detailsOf(pins), file });
      }
      case "removed": {
        const message = `${event.file} was removed. Its ${event.pins} pins still hold and are written again; toolcrib pins reset forgets pins.`;
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
