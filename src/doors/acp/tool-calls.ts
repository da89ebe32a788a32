/** Tool calls of one run as `tool_call` and `tool_call_update`. */
import type {
  ToolCallContent,
  ToolCallLocation,
  ToolCallStatus,
  ToolCallUpdate,
  ToolKind,
} from "@agentclientprotocol/sdk/unstable";
import type { ToolCallEvent, ToolCallState } from "../../agent/events.ts";
import type { AskRequest } from "../../model/ask.ts";
import type { JsonObject } from "../../model/json.ts";
import { textContent, toolContent } from "./acp-content.ts";
import { editsOf, rewriteOf } from "./diffs.ts";
import { errorText } from "./request-error.ts";
import { shownValue } from "./shown-text.ts";
import type { Updates } from "./updates.ts";
import type { Workspace } from "./workspace.ts";

/** ACP knows no state for what was refused or cancelled; the content says which. */
const STATUS: Record<ToolCallState, ToolCallStatus> = {
  pending: "pending",
  waiting: "pending",
  running: "in_progress",
  done: "completed",
  failed: "failed",
  denied: "failed",
  cancelled: "failed",
};

interface ShownCall {
  readonly title?: string;
  readonly kind?: ToolKind;
  readonly locations?: ToolCallLocation[];
  readonly rawInput: unknown;
  /** False as long as only a question has told of it, as for a tool that a command of the user runs. */
  ofRun: boolean;
  readonly diffs: readonly ToolCallContent[];
  status: ToolCallStatus;
  /** What was told last of what comes of it. */
  last: Shown;
}

interface Shown {
  readonly content?: ToolCallContent[];
  readonly rawOutput?: unknown;
}

export interface ToolCallsOptions {
  readonly workspace: Workspace;
  /** Of the raw output of one call. */
  readonly rawBytes: number;
  /** The calls have long run: what stands in files now says nothing about them. */
  readonly isPast?: boolean;
}

export class ToolCalls {
  readonly #updates: Updates;
  readonly #options: ToolCallsOptions;
  readonly #shown = new Map<string, ShownCall>();
  /** Questions that wait until the client knows what they are about. */
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();

  constructor(updates: Updates, options: ToolCallsOptions) {
    this.#updates = updates;
    this.#options = options;
  }

  async take(event: ToolCallEvent): Promise<void> {
    const toolCallId = event.id;
    const shown = this.#shown.get(toolCallId);
    const status = STATUS[event.state];
    if (shown !== undefined && isFinal(shown.status)) return;
    const { title, name, kind, input } = event;
    const locations = event.locations.map(({ path, line }) => (line === undefined ? { path } : { path, line }));
    const diffs = shown === undefined && kind === "edit" ? this.#diffs(input) : [];
    const call = shown ?? { title, kind, locations, rawInput: input, ofRun: true, status, diffs, last: {} };
    call.status = status;
    call.ofRun = true;
    this.#shown.set(toolCallId, call);
    const more = contentOf(event, call, { isFirst: shown === undefined, rawBytes: this.#options.rawBytes });
    call.last = { ...call.last, ...more };
    // What a call is about does not change, and can be long.
    await this.#updates.send(
      shown === undefined
        ? { sessionUpdate: "tool_call", toolCallId, title, name, kind, status, rawInput: input, locations, ...more }
        : { sessionUpdate: "tool_call_update", toolCallId, title, status, ...more },
    );
    this.#awaited.get(toolCallId)?.resolve();
    this.#awaited.delete(toolCallId);
  }

  /**
   * What a question is about, once the client knows the call: its events may be on their way still. What a command of the
   * user runs has no events; the question tells of it.
   */
  async asked(toolCallId: string, request: AskRequest, signal: AbortSignal): Promise<ToolCallUpdate> {
    const rawInput = request.arguments;
    if (isOfCommand(toolCallId)) {
      const isKnown = this.#shown.has(toolCallId);
      this.#shown.set(toolCallId, {
        title: request.name,
        rawInput,
        ofRun: false,
        status: "pending",
        diffs: [],
        last: {},
      });
      const about = { toolCallId, title: request.name, status: "pending", rawInput } as const;
      await this.#updates.send({ sessionUpdate: isKnown ? "tool_call_update" : "tool_call", ...about });
    } else if (!this.#shown.has(toolCallId)) {
      const known = this.#awaited.get(toolCallId) ?? Promise.withResolvers<void>();
      this.#awaited.set(toolCallId, known);
      signal.addEventListener("abort", () => known.resolve(), { once: true });
      if (!signal.aborted) await known.promise;
    }
    const { title = request.name, kind = "other", locations = [], diffs = [] } = this.#shown.get(toolCallId) ?? {};
    const content = [...diffs, textContent(request.reason)];
    return { toolCallId, title, kind, locations, status: "pending", rawInput, content };
  }

  async answered(toolCallId: string, isAllowed: boolean): Promise<void> {
    const call = this.#shown.get(toolCallId);
    if (call === undefined || call.ofRun) return;
    call.status = isAllowed ? "in_progress" : "failed";
    await this.#updates.send({ sessionUpdate: "tool_call_update", toolCallId, status: call.status });
  }

  /** Tells of them again, except of those of these ids: the client has forgotten what it was told. */
  async retell(except: ReadonlySet<string>): Promise<void> {
    for (const [toolCallId, call] of this.#shown) {
      if (except.has(toolCallId)) continue;
      const { title = toolCallId, kind = "other", locations = [], rawInput, status, last } = call;
      const about = { toolCallId, title, kind, status, rawInput, locations, ...last };
      await this.#updates.send({ sessionUpdate: "tool_call", ...about });
    }
  }

  /** The run is over: no call stays open at the client. */
  async end({ cancelled }: { readonly cancelled: boolean }): Promise<void> {
    for (const [toolCallId, call] of this.#shown) {
      if (isFinal(call.status)) continue;
      call.status = call.ofRun || cancelled || call.status === "pending" ? "failed" : "completed";
      const content = call.status === "failed" ? [textContent("It was cancelled.")] : [];
      await this.#updates.send({ sessionUpdate: "tool_call_update", toolCallId, status: call.status, content });
    }
  }

  #diffs(input: JsonObject): ToolCallContent[] {
    const { workspace, isPast = false } = this.#options;
    const parts = editsOf(input, workspace);
    return parts.length > 0 || isPast ? parts : rewriteOf(input, workspace);
  }
}

/** As the agent names what it runs for a command of the user. */
function isOfCommand(toolCallId: string): boolean {
  return toolCallId.startsWith("command_");
}

function contentOf(
  event: ToolCallEvent,
  { diffs, status }: ShownCall,
  { isFirst, rawBytes }: { readonly isFirst: boolean; readonly rawBytes: number },
): Shown {
  if (!isFinal(status)) {
    const message = event.progress?.message;
    if (typeof message === "string") return { content: [...diffs, textContent(message)] };
    return isFirst && diffs.length > 0 ? { content: [...diffs] } : {};
  }
  const blocks = toolContent(event.content ?? []);
  if (blocks.length === 0 && event.error !== undefined) blocks.push(textContent(errorText(event.error)));
  // A diff of what did not happen would be read as done.
  const content = status === "completed" ? [...diffs, ...blocks] : blocks;
  return { content, rawOutput: shownValue(rawOutput(event), rawBytes) };
}

function rawOutput({ details, content, error }: ToolCallEvent): unknown {
  return details ?? (error === undefined ? { content: content ?? [] } : { content: content ?? [], error });
}

function isFinal(status: ToolCallStatus): boolean {
  return status === "completed" || status === "failed";
}
