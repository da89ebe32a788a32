/** Pins for an operator: `hub.pins`. */
import type { PinInfo } from "../../contract/catalog-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import { kindDetail, type PinName } from "./pin-reports.ts";
import type { PinChoice, Pins } from "./pins.ts";

interface HubPinsOptions {
  /** The current pins. */
  readonly pins: () => Pins;
  /** Whether a server of this id exists now. */
  readonly isThere: (server: string) => boolean;
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
      throw new ToolcribError("not_found", `The server "${server}" has no pins, and offers nothing now.`);
    }
  }

  #record(event: string, { server, kind, tool }: PinName, by: ChangedBy, more: Record<string, unknown> = {}): void {
    this.#options.audit.event({
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
