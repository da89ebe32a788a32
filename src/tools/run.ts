/** Runs one in-process tool: checks arguments, executes, and turns whatever comes of it into a result or a ToolcribError. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { CallToolResult, Progress } from "../model/protocol.ts";
import type { UseContext } from "../model/source.ts";
import {
  type Tool,
  ToolAuthorizationError,
  ToolDeliveryError,
  ToolInputError,
  type ToolUpdate,
} from "../model/tool.ts";
import { checkedArguments, checkedForeignArguments } from "./arguments.ts";
import { isForeign } from "./foreign-schemas.ts";
import { asToolResult, errorResult, textOf } from "./result.ts";

/** Has no timeout of its own: `context.signal` rules. */
export async function runTool(tool: Tool, args: JsonObject, context: UseContext): Promise<CallToolResult> {
  const { signal, callId } = context;
  const params = isForeign(tool.parameters) ? await checkedForeignArguments(tool, args) : checkedArguments(tool, args);
  if (signal.aborted) throw givenUp(tool, signal);
  const updates = progressFrom(context.onProgress);
  try {
    const returned = await orAborted(tool, signal, () => tool.execute(callId, params, signal, updates?.onUpdate));
    return asToolResult(tool.name, returned);
  } catch (thrown) {
    return failed(tool, thrown, signal);
  } finally {
    updates?.stop();
  }
}

/** Settles as soon as the signal aborts, also for a tool that ignores it; what the tool does later is nobody's concern. */
async function orAborted(tool: Tool, signal: AbortSignal, execute: () => unknown): Promise<unknown> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(givenUp(tool, signal));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // In an async function, so that a tool that throws at once is no special case.
    return await Promise.race([aborted, (async () => execute())()]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

class GivenUp extends ToolcribError {}

/** The reason of whoever aborted, such as a timeout, if it is one of ours. */
function givenUp(tool: Tool, signal: AbortSignal): GivenUp {
  const reason: unknown = signal.reason;
  if (reason instanceof ToolcribError) {
    return new GivenUp(reason.code, reason.message, { hint: reason.hint, details: reason.details, cause: reason });
  }
  return new GivenUp("cancelled", `The call of the tool "${tool.name}" was cancelled.`, { cause: reason });
}

/** Errors are also known by name, because a plugin may carry its own copy of the classes. */
function failed(tool: Tool, thrown: unknown, signal: AbortSignal): CallToolResult {
  if (thrown instanceof GivenUp || thrown instanceof ToolDeliveryError) throw thrown;
  if (signal.aborted) throw givenUp(tool, signal);
  const name = thrown instanceof Error ? thrown.name : undefined;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const message = text === "" ? `The tool "${tool.name}" failed without saying why.` : text;
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

/** Counts the updates, since progress must grow, unless the tool does; those that come after the end are dropped. */
function progressFrom(onProgress: ((progress: Progress) => void) | undefined): Updates | undefined {
  if (onProgress === undefined) return undefined;
  let progress = 0;
  let running = true;
  return {
    onUpdate(partial) {
      if (!running) return;
      const counted = ownCount(partial);
      if (counted !== undefined) {
        onProgress(counted);
        return;
      }
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
  return isJsonObject(counted) && typeof counted["progress"] === "number"
    ? { ...counted, progress: counted["progress"] }
    : undefined;
}
