import type { JsonObject } from "./json.ts";
import type {
  Progress,
  PromptDefinition,
  ResourceDefinition,
  ResourceTemplateDefinition,
  Result,
  ToolDefinition,
} from "./protocol.ts";
import type { SessionContext } from "./session.ts";

/** What a Source offers at one moment, in its own names. Immutable; a change is a new object. */
export interface Definitions {
  readonly tools: readonly ToolDefinition[];
  readonly resources: readonly ResourceDefinition[];
  readonly templates: readonly ResourceTemplateDefinition[];
  readonly prompts: readonly PromptDefinition[];
}

export const NO_DEFINITIONS: Definitions = { tools: [], resources: [], templates: [], prompts: [] };

/** One use of something a Source offers, in the Source's own names. */
export type Use =
  | { readonly kind: "tool"; readonly name: string; readonly arguments: JsonObject }
  | { readonly kind: "resource"; readonly uri: string }
  | { readonly kind: "prompt"; readonly name: string; readonly arguments: Readonly<Record<string, string>> }
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

export interface UseContext {
  readonly callId: string;
  readonly session: SessionContext;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** `_meta` of the caller that goes upstream with the request, such as trace context. */
  readonly meta?: JsonObject;
  /** Who reads the result, for sources that run further calls on the caller's behalf. */
  readonly audience?: "agent";
}

/** Anything that lists and runs capabilities: a Connection, the in-process registry, the skills. */
export interface Source {
  readonly id: string;
  readonly kind: "server" | "local";
  definitions(): Definitions;
  /** Resolves with the result as the source gave it, `isError` results included. Rejects with ToolcribError only. */
  run(use: Use, context: UseContext): Promise<Result>;
  /** Drops what it holds for a session that has ended, such as its subscriptions. Must not throw. */
  endSession?(sessionId: string): void;
  /** Called after `definitions()` changed. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
}
