import type { AskCallback } from "./decision.ts";
import type { JsonObject } from "./json.ts";
import type { TransportKind } from "./server-state.ts";
import type {
  Era,
  Progress,
  PromptDefinition,
  ResourceDefinition,
  RequestId,
  ResourceTemplateDefinition,
  Result,
  ToolDefinition,
} from "./protocol.ts";

/** The definitions of a Source at one moment, under its own names. Immutable; a change is a new object. */
export interface Definitions {
  readonly tools: readonly ToolDefinition[];
  readonly resources: readonly ResourceDefinition[];
  readonly templates: readonly ResourceTemplateDefinition[];
  readonly prompts: readonly PromptDefinition[];
}

export const NO_DEFINITIONS: Definitions = { tools: [], resources: [], templates: [], prompts: [] };

/** One use of something a Source offers, in the Source's own names. */
export type Use =
  | {
      readonly kind: "tool";
      readonly name: string;
      readonly arguments: JsonObject;
      /** A request about a task that a call of this tool began, in place of a call. */
      readonly task?: TaskRequest;
    }
  | { readonly kind: "resource"; readonly uri: string }
  | { readonly kind: "prompt"; readonly name: string; readonly arguments?: Readonly<Record<string, string>> }
  | {
      readonly kind: "completion";
      readonly ref:
        | { readonly type: "ref/prompt"; readonly name: string }
        | { readonly type: "ref/resource"; readonly uri: string };
      readonly argument: { readonly name: string; readonly value: string };
      readonly context?: JsonObject;
    }
  | { readonly kind: "subscribe"; readonly uri: string }
  | { readonly kind: "unsubscribe"; readonly uri: string };

export interface TaskRequest {
  /** Those of the caller's generation; `follow` asks for reports on it for as long as the session lasts. */
  readonly method: "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" | "follow";
  /** In the server's own ids. */
  readonly params: JsonObject;
}

const FOLLOWED_TASK = "mcp-task:";

/** A task is followed as a resource is, under an address that no resource has. */
export function followedTask(uri: string): string | undefined {
  return uri.startsWith(FOLLOWED_TASK) ? uri.slice(FOLLOWED_TASK.length) : undefined;
}

/** The use that a Source sees. */
export function asSourceUse(use: Use): Use {
  if (use.kind !== "tool" || use.task?.method !== "follow") return use;
  return { kind: "subscribe", uri: `${FOLLOWED_TASK}${String(use.task.params["taskId"])}` };
}

/** The input of a retried request of the modern era; passed on unchanged. */
export interface InputRound {
  readonly responses?: JsonObject;
  readonly state?: unknown;
}

/** The options of a caller for one use. */
export interface UseOptions {
  readonly onProgress?: (progress: Progress) => void;
  /** `_meta` of the caller that goes upstream with the request, such as trace context. */
  readonly meta?: JsonObject;
  /** Params that go along as they came: fields of a later protocol, or of client and server alone. */
  readonly extra?: JsonObject;
  /** Answers what the source asks while it runs; the session's own client if absent. */
  readonly client?: ClientSide;
  /**
   * Gets every notification that came on this use's own stream, such as log messages; without it they go to everyone who
   * listens. `notifications/progress` goes to `onProgress` instead.
   */
  readonly onNotice?: (method: string, params: JsonObject) => void;
  /** The least log level that the caller wants while this runs; only servers of the modern era can be asked for it. */
  readonly logLevel?: string;
  /**
   * Set if the caller handles `input_required` results of a modern server itself; it then contains the input of a
   * retry. Without it the client is asked and the source continues by itself.
   */
  readonly input?: InputRound;
  /**
   * The generation of tasks that the caller understands; `none` for a client that could have declared them and did not. Without it the
   * result that a task ends with is waited for.
   */
  readonly tasks?: Era | "none";
  /** Keeps a result above `limits.resultBytes` for the session, and returns a short one that says where it can be read. */
  readonly keepLarge?: boolean;
  /** Answers if the call needs approval; the session's own callback, or the hub's, if absent. */
  readonly onAsk?: AskCallback;
  /** The reader of the result: an agent's model gets untrusted text between boundary markers. */
  readonly audience?: "agent";
  /** Of the caller's JSON-RPC request, where there is one, for its trace. */
  readonly requestId?: RequestId;
  readonly protocolVersion?: string;
}

/** A request as it went to a server. */
export interface SentRequest {
  readonly id: RequestId;
  readonly protocolVersion: string;
  readonly transport: TransportKind;
  /** Of a remote server, as its entry has it. */
  readonly url: string | undefined;
}

/** The part of AbortSignal that is commonly used; every AbortSignal is a CancelSignal. */
export interface CancelSignal {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A use as its source sees it. */
export interface UseContext extends UseOptions {
  readonly callId: string;
  readonly session: SessionContext;
  readonly signal: CancelSignal;
  readonly client: ClientSide;
  /** For a source that had to be started first, which may list other things now: rejects if this may no longer run. */
  readonly confirm?: () => Promise<void>;
  /** Is told each request that is sent for it. */
  readonly onSent?: (request: SentRequest) => void;
}

/** Anything that lists and runs capabilities: a Connection, the in-process registry, the skills. */
export interface Source {
  readonly id: string;
  readonly kind: "server" | "local" | "skills";
  definitions(): Definitions;
  /** Resolves with the result as the source gave it, `isError` results included. Rejects with ToolcribError only. */
  run(use: Use, context: UseContext): Promise<Result>;
  /** Releases what belongs to a session that has ended, such as its subscriptions. Must not throw. */
  endSession?(sessionId: string): void;
  /** Called after `definitions()` changed. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
}

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
  /**
   * True while this call of the client cannot take a question, because one is open that ends the client's request. Not a getter:
   * V8 allocates the getters of an object literal in the old generation, and with them what they refer to, which is the call.
   */
  readonly isWaiting?: () => boolean;
  /** Its abilities: MCP's client capabilities `roots`, `sampling` and `elicitation`, as the client declared them. */
  readonly capabilities: Readonly<JsonObject>;
  /**
   * True if its roots are only for servers that the session itself brought, and for those whose entries ask for the
   * session's: the operator of the hub did not choose them.
   */
  readonly rootsOnRequest?: boolean;
  /** Answers `roots/list`, with MCP's own result. */
  readonly listRoots?: (context: ServerRequestContext) => Promise<JsonObject>;
  readonly sample?: SamplingCallback;
  /** Forms, and addresses (`mode: "url"`) if the capabilities say so. */
  readonly elicit?: ElicitationCallback;
}

/** The part of a session that a Source may know and use. */
export type ClientEnv = Readonly<Record<string, string>>;

export interface SessionContext {
  readonly id: string;
  /** The door that opened it: `library`, `cli`, … */
  readonly door: string;
  readonly role?: string;
  /** The authenticated user. Servers with `isolation: "user"` need it. */
  readonly user?: string;
  /** True for a session of the user who runs the hub. */
  readonly owner: boolean;
  /** Variables of its client that `hub.clientEnv` names: references of its own connections use them first. */
  readonly clientEnv?: ClientEnv;
  readonly workspaceDir?: string;
  /** Answers servers, for calls without their own client. */
  readonly client: ClientSide;
}
