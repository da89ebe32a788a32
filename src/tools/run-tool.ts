/** Runs one in-process tool: checks arguments, executes, and turns the outcome into a result or a ToolcribError. */
import { abortSignalOf, withAbort } from "../base/async.ts";
import { isContentBlock, textBlock } from "../model/content.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { CallToolResult, ContentBlock, Progress } from "../model/protocol.ts";
import type { UseContext } from "../model/source.ts";
import {
  type Tool,
  ToolAuthorizationError,
  ToolDeliveryError,
  ToolInputError,
  type ToolUpdate,
} from "../model/tool.ts";
import { checkArguments, checkUntrustedArguments } from "./check-arguments.ts";
import { isUntrustedSchema } from "./untrusted-schemas.ts";

/** Has no timeout: `context.signal` ends it. */
export async function runTool(tool: Tool, args: JsonObject, context: UseContext): Promise<CallToolResult> {
  const { callId } = context;
  const signal = abortSignalOf(context.signal);
  const params = isUntrustedSchema(tool.parameters)
    ? await checkUntrustedArguments(tool, args)
    : checkArguments(tool, args);
  if (signal.aborted) throw abortedCall(tool, signal);
  const updates = progressFrom(context.onProgress);
  try {
    // In an async function, so that a tool that throws before its first await rejects too.
    const execute = async (): Promise<unknown> => tool.execute(callId, params, signal, updates?.onUpdate);
    return asToolResult(tool.name, await withAbort(execute(), signal, () => abortedCall(tool, signal)));
  } catch (thrown) {
    return failedResult(tool, thrown, signal);
  } finally {
    updates?.stop();
  }
}

class AbortedCall extends ToolcribError {}

/** The reason of the abort, such as a timeout, if it is a ToolcribError. */
function abortedCall(tool: Tool, signal: AbortSignal): AbortedCall {
  const reason: unknown = signal.reason;
  if (reason instanceof ToolcribError) {
    return new AbortedCall(reason.code, reason.message, { hint: reason.hint, details: reason.details, cause: reason });
  }
  return new AbortedCall("cancelled", `The call of the tool "${tool.name}" was cancelled.`, { cause: reason });
}

/** Errors are also recognized by name, because a plugin may have its own copy of the classes. */
function failedResult(tool: Tool, thrown: unknown, signal: AbortSignal): CallToolResult {
  if (thrown instanceof AbortedCall || thrown instanceof ToolDeliveryError) throw thrown;
  if (signal.aborted) throw abortedCall(tool, signal);
  const name = thrown instanceof Error ? thrown.name : undefined;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const message = text === "" ? `The tool "${tool.name}" failed without a message.` : text;
  if (thrown instanceof ToolInputError || name === "ToolInputError") {
    throw new ToolcribError("invalid_arguments", message, { details: { tool: tool.name }, cause: thrown });
  }
  if (thrown instanceof ToolAuthorizationError || name === "ToolAuthorizationError") {
    throw new ToolcribError("denied", message, { details: { tool: tool.name }, cause: thrown });
  }
  return errorResult(message);
}

interface Updates {
  readonly onUpdate: ToolUpdate;
  stop(): void;
}

/** Counts the updates, since progress must increase, unless the tool counts itself. Updates after the end are dropped. */
function progressFrom(onProgress: ((progress: Progress) => void) | undefined): Updates | undefined {
  if (onProgress === undefined) return undefined;
  let progress = 0;
  let running = true;
  return {
    onUpdate(partial) {
      if (!running) return;
      const counted = ownCount(partial);
      if (counted !== undefined) return onProgress(counted);
      progress += 1;
      const message = textOf(partial);
      onProgress(message === "" ? { progress } : { progress, message });
    },
    stop() {
      running = false;
    },
  };
}

/** A sloppy tool may hand over anything. */
function ownCount(partial: unknown): Progress | undefined {
  const counted = isJsonObject(partial) ? partial["progress"] : undefined;
  if (!isJsonObject(counted) || typeof counted["progress"] !== "number") return undefined;
  return { ...counted, progress: counted["progress"] };
}

/**
 * The result of a call from what a tool returned. Tolerant: a sloppy tool is still useful. `details` and other fields are
 * kept for the calling program; doors to models leave them out. Cyclic details are left out, because they cannot be
 * serialized.
 */
function asToolResult(tool: string, returned: unknown): CallToolResult {
  if (returned === undefined || returned === null) return { content: [] };
  if (typeof returned === "string") return { content: [textBlock(returned)] };
  if (!isJsonObject(returned) || !Array.isArray(returned["content"])) {
    return errorResult(`The tool "${tool}" returned something that is not a result: it has no list "content".`);
  }
  const content: ContentBlock[] = [];
  for (const block of returned["content"] as unknown[]) {
    if (typeof block === "string") content.push(textBlock(block));
    else if (isContentBlock(block)) content.push(block);
    else return errorResult(`The tool "${tool}" returned a content block without a type.`);
  }
  const { isError, details, ...rest } = returned;
  return {
    ...rest,
    content,
    ...(details === undefined || isCyclic(details) ? {} : { details }),
    ...(isError === true ? { isError } : {}),
  };
}

function errorResult(message: string): CallToolResult {
  return { content: [textBlock(message)], isError: true };
}

/** The text of a partial or whole result, for a progress line. */
function textOf(returned: unknown): string {
  if (typeof returned === "string") return returned;
  const content: unknown = isJsonObject(returned) ? returned["content"] : undefined;
  if (!Array.isArray(content)) return "";
  const texts = content.map((block: unknown) => (isJsonObject(block) ? block["text"] : undefined));
  return texts.filter((text) => typeof text === "string").join("\n");
}

/** Whoever looks at more than this is as slow as a loop without end; the size of such a value is bounded elsewhere. */
const MAX_VISITED = 100_000;

/** Whether a value is somewhere inside itself, so that no JSON can be made of it. */
function isCyclic(value: unknown): boolean {
  const around = new Set<object>();
  const seen = new Set<object>();
  // An explicit stack: deep nesting would overflow a recursive walk.
  const pending: { readonly value: unknown; readonly isLeft?: true }[] = [{ value }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const at = next.value;
    if (typeof at !== "object" || at === null) continue;
    if (next.isLeft === true) {
      around.delete(at);
      continue;
    }
    if (around.has(at)) return true;
    if (seen.has(at)) continue;
    if (seen.size >= MAX_VISITED) return false;
    seen.add(at);
    around.add(at);
    pending.push({ value: at, isLeft: true });
    for (const member of Object.values(at)) if (typeof member === "object") pending.push({ value: member });
  }
  return false;
}
