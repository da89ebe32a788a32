import type { Clock } from "../base/clock.ts";
import { canonicalJson } from "../model/json.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import {
  type AuthInfo,
  type ServerInfo,
  type ServerState,
  STATUS_OF,
  type TransportKind,
} from "../model/server-state.ts";
import { type Definitions, NO_DEFINITIONS } from "../model/source.ts";
import type { Agreement } from "./handshake.ts";

interface ServerFacts {
  readonly spec: ServerSpec;
  readonly state: ServerState;
  readonly transport: TransportKind;
  readonly agreement: Agreement | null;
  readonly toolCount: number;
  readonly sleeping?: true | undefined;
  readonly lastError: string | null;
  readonly warnings: readonly string[];
  readonly auth: AuthInfo | undefined;
}

/** Of a server's own name and version, which are in every list of servers. */
const MAX_NAME_LENGTH = 200;

export function serverInfo(facts: ServerFacts): ServerInfo {
  const { spec, state, transport, agreement, toolCount, sleeping, lastError, warnings, auth } = facts;
  const { name, version } = agreement?.serverInfo ?? {};
  return {
    id: spec.id,
    name: spec.name ?? spec.id,
    transport,
    state: state.kind,
    status: STATUS_OF[state.kind],
    capabilities: agreement?.capabilities ?? {},
    toolCount: countedTools(state.kind, toolCount, lastError),
    sleeping,
    serverName: typeof name === "string" ? name.slice(0, MAX_NAME_LENGTH) : null,
    serverVersion: typeof version === "string" ? version.slice(0, MAX_NAME_LENGTH) : null,
    lastError: state.kind === "degraded" ? state.reason : lastError,
    hint: "hint" in state ? state.hint : undefined,
    problem: "problem" in state ? state.problem : undefined,
    progress: "progress" in state ? state.progress : undefined,
    connectedAt: "since" in state ? new Date(state.since).toISOString() : null,
    origin: spec.origin,
    tags: spec.tags ?? [],
    era: agreement?.era ?? null,
    protocolVersion: agreement?.version ?? null,
    warnings,
    auth,
    restart:
      state.kind === "restarting"
        ? { attempt: state.attempt, nextAt: new Date(state.nextAt).toISOString(), delayMs: state.delayMs }
        : undefined,
    attempts: state.kind === "failed" ? state.attempts : undefined,
  };
}

/** A server that is down has no tools that could be called, even while they are still listed; nor while it is started again. */
export function countedTools(state: ServerState["kind"], toolCount: number, lastError: string | null): number {
  const isDown = ["failed", "restarting", "closed", "disabled"].includes(state);
  return isDown || (state === "connecting" && lastError !== null) ? 0 : toolCount;
}

/** True for a server that is listed and waits for its next use; undefined otherwise, as `ServerInfo` has it. */
export function asleep(state: ServerState, definitions: Definitions): true | undefined {
  return state.kind === "idle" && definitions !== NO_DEFINITIONS ? true : undefined;
}

export const DEFAULT_GRACE_MS = 30_000;

/** How long a server that has failed for good is still listed. */
export class GracePeriod {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #onOver: () => void;
  #earned = false;
  #endsAt: number | undefined;
  #stopTimer: () => void = () => {};

  constructor(clock: Clock, ms: number, onOver: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onOver = onOver;
  }

  /** The server is ready: the next failure has the whole time. */
  earn(): void {
    this.forget();
    this.#earned = true;
  }

  /** The server has failed. The time goes on from the first failure, so that vain attempts do not prolong it. */
  begin(): void {
    if (!this.#earned) return this.#onOver();
    const now = this.#clock.now();
    this.#endsAt ??= now + this.#ms;
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(Math.max(this.#endsAt - now, 0), () => {
      this.forget();
      this.#onOver();
    });
  }

  /** An attempt is in progress; its outcome decides. */
  hold(): void {
    this.#stopTimer();
  }

  forget(): void {
    this.#stopTimer();
    this.#earned = false;
    this.#endsAt = undefined;
  }
}

/** A server that has been up for this long gets a fresh count. */
const STABLE_MS = 60_000;

interface NextRestart {
  /** 1 for the first in a row. */
  readonly attempt: number;
  readonly delayMs: number;
}

/** Counts restarts in a row and says how long to wait before the next one. */
export class Restarts {
  readonly #rule: () => ServerSpec["restart"];
  readonly #clock: Clock;
  #used = 0;
  #stopWatching: () => void = () => {};

  constructor(rule: () => ServerSpec["restart"], clock: Clock) {
    this.#rule = rule;
    this.#clock = clock;
  }

  /** Null when there is none left. */
  next(): NextRestart | null {
    const rule = this.#rule();
    if (rule === false || this.#used >= rule.max) return null;
    const delayMs = Math.min(rule.initialDelay * 2 ** this.#used, rule.maxDelay);
    this.#used++;
    return { attempt: this.#used, delayMs };
  }

  /** Restarts in a row so far. */
  get used(): number {
    return this.#used;
  }

  /** The server came up: the count is forgotten if it stays up. */
  up(): void {
    this.#stopWatching();
    this.#stopWatching = this.#clock.after(STABLE_MS, () => this.reset());
  }

  down(): void {
    this.#stopWatching();
  }

  reset(): void {
    this.#stopWatching();
    this.#used = 0;
  }
}

/** Settings that may change under an open link. A new setting counts as part of the link. */
const CHANGEABLE: ReadonlySet<string> = new Set<keyof ServerSpec>([
  "name",
  "tools",
  "roles",
  "tags",
  "trust",
  "pinResources",
  "toolPrefix",
  "overrides",
  "autoConnect",
  "start",
  "hubStart",
  "idle",
  "timeout",
  "installTimeout",
  "toolTimeout",
  "restart",
  "origin",
  "replaces",
  "sandboxFrom",
  "replicas",
]);

/** Whether a link made for one of them serves the other as well. */
export function isSameLink(one: ServerSpec, other: ServerSpec): boolean {
  return canonicalJson(linkSettings(one)) === canonicalJson(linkSettings(other));
}

/** The settings that a link is made from. */
export function linkSettings(spec: ServerSpec): Partial<ServerSpec> {
  return Object.fromEntries(Object.entries(spec).filter(([name]) => !CHANGEABLE.has(name)));
}
