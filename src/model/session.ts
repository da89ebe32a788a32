import type { JsonObject } from "./json.ts";
import type { Root } from "./protocol.ts";

/** Answers a server's `sampling/createMessage`; params and result are MCP's own shapes. */
export type SamplingCallback = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>;

/** Answers a server's `elicitation/create`; params and result are MCP's own shapes. */
export type ElicitationCallback = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>;

export interface ServerRequestContext {
  readonly server: string;
  readonly signal: AbortSignal;
}

/** What a Source may know and use of the session on whose behalf it runs something. */
export interface SessionContext {
  readonly id: string;
  /** The door that opened it: `library`, `cli`, … */
  readonly door: string;
  readonly role?: string;
  /** Who is behind it, as the door that opened it has made sure of. Servers with `isolation: "user"` need it. */
  readonly user?: string;
  /** True for a session of the user who runs the hub. */
  readonly owner: boolean;
  readonly workspaceDir?: string;
  readonly roots: readonly Root[];
  readonly onSample?: SamplingCallback;
  readonly onElicit?: ElicitationCallback;
}
