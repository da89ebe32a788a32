import type { JsonObject } from "./json.ts";

/** Answers a server's `sampling/createMessage`; params and result are MCP's own shapes. */
export type SamplingCallback = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>;

/** Answers a server's `elicitation/create`; params and result are MCP's own shapes. */
export type ElicitationCallback = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>;

export interface ServerRequestContext {
  readonly server: string;
  readonly signal: AbortSignal;
}

/** The client behind a call: it answers what servers ask while the call runs. */
export interface ClientSide {
  /** Calls with the same key have the same client: a server that asks then means it, whichever call it asks for. */
  readonly key: unknown;
  /** True while this call of the client cannot take a question, because one is open that ends the client's request. */
  readonly waiting?: boolean;
  /** What it can answer: MCP's client capabilities `roots`, `sampling` and `elicitation`, as the client declared them. */
  readonly capabilities: Readonly<JsonObject>;
  /**
   * True if its roots are only for servers that the session itself brought, and for those whose entries ask for the
   * session's: they are where the client happens to be, or come from a guest, and nobody who runs the hub named them.
   */
  readonly rootsOnRequest?: boolean;
  /** Answers `roots/list`, with MCP's own result. */
  readonly listRoots?: (context: ServerRequestContext) => Promise<JsonObject>;
  readonly sample?: SamplingCallback;
  /** Forms, and addresses (`mode: "url"`) if the capabilities say so. */
  readonly elicit?: ElicitationCallback;
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
  /** Who answers servers, for calls that name no client of their own. */
  readonly client: ClientSide;
}
