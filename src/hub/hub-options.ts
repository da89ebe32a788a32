import type { Clock } from "../base/clock.ts";
import type { AskCallback } from "../model/decision.ts";
import type { ClientSide, ElicitationCallback, SamplingCallback } from "../model/source.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Store } from "../store/store.ts";
import type { ToolRegistry } from "../tools/tool-registry.ts";

export interface HubOptions {
  /** Instead of `$TOOLCRIB_HOME`, which is `~/.toolcrib` by default. */
  readonly home?: string;
  /** Folder offered to servers as a root; the config's `workspaceDir` by default. */
  readonly workspaceDir?: string;
  /** Answers servers that ask for a completion by a model. Without it they are refused. */
  readonly onSample?: SamplingCallback;
  /** Answers servers that ask the user something. Without it they are refused. */
  readonly onElicit?: ElicitationCallback;
  /** Answers for calls that an `ask` rule holds back, in sessions that have no callback of their own. */
  readonly onAsk?: AskCallback;
  /** False leaves `skills.autoStart` alone, for a hub that is there for one call. */
  readonly skillServers?: boolean;
  /** In-process tools; an empty registry of its own by default. */
  readonly registry?: ToolRegistry;
  /** Closes the hub when aborted. */
  readonly signal?: AbortSignal;
  /**
   * How long to wait for servers, in milliseconds; 10,000 by default, false for not at all, true for as long as they
   * take. Who is late joins when it is ready, and a `catalog` event says so. `hub.servers.settled()` waits later.
   */
  readonly wait?: boolean | number;
  /** Which servers to connect: those with `autoConnect` (default), none, or the named ones. */
  readonly connect?: "auto" | "none" | readonly string[];
  /** Narrows the hub's own session to a role. */
  readonly role?: string;
  /** The door that the hub's own session belongs to. */
  readonly door?: string;
  /** The `workspaceDir` given here is only where the agent works: servers are offered the config's as a root, if it names one. */
  readonly rootsOnRequest?: boolean;
  /** Log messages that servers are asked for, from this level on; `info` by default. */
  readonly logLevel?: string;
  /**
   * What the hub keeps things in. By default the one that the config names, made if it is not there; none for a config given
   * in code that names none. `existing` opens it only if it is there and takes nothing in; false does without. One that is
   * given is not closed with the hub.
   */
  readonly store?: Store | "existing" | false;
  /** Makes it a node of the cluster that the config names; without it the hub works by itself, and says so. */
  readonly cluster?: boolean;
  /**
   * Sends traces and metrics to the endpoint of the process's `OTEL_*` variables, with the package @opentelemetry/sdk-node.
   * A program that registers an OpenTelemetry SDK itself needs no option.
   */
  readonly otelExport?: boolean;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  /** Learns the hub's secrets, for a program that masks its own output too. */
  readonly redactor?: Redactor;
}

/**
 * Answers a server that asks while no call is in progress; undefined for the hub's own callbacks.
 * @param user Whose connection it is, where each user has one.
 * @param session The same, where each session has one.
 */
export type IdleClient = (
  server: string,
  user: string | undefined,
  session: string | undefined,
) => ClientSide | undefined;
