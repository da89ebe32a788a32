/** The shape of an in-process tool, the same one that OpenClaw-style agents use. */
import { textBlock } from "./content.ts";
import { type ErrorObject, errorTextForModel, ToolcribError } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { ContentBlock, Progress, ToolAnnotations } from "./protocol.ts";

export interface ToolResult<Details = unknown> {
  content: ContentBlock[];
  /** For the program that called; never sent to a model. */
  details?: Details;
  isError?: boolean;
}

export interface PartialResult extends ToolResult {
  /** How far it is, of a tool that counts by itself; else its updates are counted. */
  progress?: Progress;
}

export type ToolUpdate = (partial: PartialResult) => void;

export interface Tool<Params extends JsonObject = JsonObject, Details = unknown> {
  name: string;
  /** Name for people. */
  label?: string;
  description: string;
  /** JSON Schema 2020-12 of the arguments; arguments are validated before `execute`. */
  parameters: JsonObject;
  /**
   * May throw: `ToolInputError` becomes `invalid_arguments`, `ToolAuthorizationError` becomes `denied`,
   * `ToolDeliveryError` the error that it is, anything else an error result. Must stop soon after `signal` aborts.
   */
  execute(
    toolCallId: string,
    params: Params,
    signal?: AbortSignal,
    onUpdate?: ToolUpdate,
  ): Promise<ToolResult<Details>>;
  /** Only sessions of the hub's own user may call it. */
  ownerOnly?: boolean;
  annotations?: ToolAnnotations;
}

/** An error as a result that a model reads. */
export function errorToolResult(error: ErrorObject): ToolResult {
  return { content: [textBlock(errorTextForModel(error))], details: { error }, isError: true };
}

/** Thrown by a tool whose arguments make no sense to it. */
export class ToolInputError extends Error {
  override readonly name: string = "ToolInputError";
}

/** Thrown by a tool that will not do this for this caller. */
export class ToolAuthorizationError extends Error {
  override readonly name: string = "ToolAuthorizationError";
}

/** Thrown by a tool that something elsewhere runs, where the call did not come about: the call ends with this very error. */
export class ToolDeliveryError extends ToolcribError {}
