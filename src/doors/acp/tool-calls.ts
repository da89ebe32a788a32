/** Tool calls of one run as `tool_call` and `tool_call_update`. */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  ContentBlock as AcpBlock,
  ToolCallContent,
  ToolCallLocation,
  ToolCallStatus,
  ToolCallUpdate,
  ToolKind,
} from "@agentclientprotocol/sdk/unstable";
import type { ToolCallEvent, ToolCallState } from "../../agent/agent-options.ts";
import { MARKER } from "../../guard/wrap-untrusted.ts";
import { describeBlock, truncateMiddle } from "../../model/content.ts";
import type { AskRequest } from "../../model/decision.ts";
import { isJsonObject, type JsonObject, mapTexts } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { errorText } from "./request-error.ts";
import type { Updates } from "./updates.ts";
import { isReallyInside, type Workspace } from "./workspace.ts";

/** ACP has no status for refused or cancelled; the content says which. */
const STATUS: Record<ToolCallState, ToolCallStatus> = {
  pending: "pending",
  waiting: "pending",
  running: "in_progress",
  done: "completed",
  failed: "failed",
  denied: "failed",
  cancelled: "failed",
};

interface ReportedCall {
  readonly title?: string;
  readonly kind?: ToolKind;
  readonly locations?: ToolCallLocation[];
  readonly rawInput: unknown;
  /** False while only a permission request has reported it, as for a tool that a user command runs. */
  ofRun: boolean;
  readonly diffs: readonly ToolCallContent[];
  status: ToolCallStatus;
  /** The output that was reported last. */
  last: CallOutput;
}

interface CallOutput {
  readonly content?: ToolCallContent[];
  readonly rawOutput?: unknown;
}

interface ToolCallsOptions {
  readonly workspace: Workspace;
  /** Of the raw output of one call. */
  readonly rawBytes: number;
  /** The calls ended long ago: the current files say nothing about them. */
  readonly isPast?: boolean;
}

export class ToolCalls {
  readonly #updates: Updates;
  readonly #options: ToolCallsOptions;
  readonly #shown = new Map<string, ReportedCall>();
  /** Permission requests that wait until the client knows the call. */
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
    const locations = event.locations.map(({ path, line }) => ({ path, line }));
    const diffs = shown === undefined && kind === "edit" ? this.#diffs(input) : [];
    const call = shown ?? { title, kind, locations, rawInput: input, ofRun: true, status, diffs, last: {} };
    call.status = status;
    call.ofRun = true;
    this.#shown.set(toolCallId, call);
    const more = contentOf(event, call, { isFirst: shown === undefined, rawBytes: this.#options.rawBytes });
    call.last = { ...call.last, ...more };
    // Input and locations do not change, and can be long.
    await this.#updates.send(
      shown === undefined
        ? { sessionUpdate: "tool_call", toolCallId, title, name, kind, status, rawInput: input, locations, ...more }
        : { sessionUpdate: "tool_call_update", toolCallId, title, status, ...more },
    );
    this.#awaited.get(toolCallId)?.resolve();
    this.#awaited.delete(toolCallId);
  }

  /**
   * The call that a permission request is about, once the client knows it: its events may still be on their way. A tool that a
   * user command runs has no events; the request reports it.
   */
  async asked(toolCallId: string, request: AskRequest, signal: AbortSignal): Promise<ToolCallUpdate> {
    const rawInput = request.arguments;
    // The agent's prefix for calls of user commands.
    if (toolCallId.startsWith("command_")) {
      const isKnown = this.#shown.has(toolCallId);
      const shown = { title: request.name, status: "pending", rawInput } as const;
      this.#shown.set(toolCallId, { ...shown, ofRun: false, diffs: [], last: {} });
      const about = { toolCallId, ...shown };
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

  /** Reports the calls again, except those with these ids, to a client that loads the session. */
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
      const content = call.status === "failed" ? [textContent("The call was cancelled.")] : [];
      await this.#updates.send({ sessionUpdate: "tool_call_update", toolCallId, status: call.status, content });
    }
  }

  #diffs(input: JsonObject): ToolCallContent[] {
    const { workspace, isPast = false } = this.#options;
    const parts = editDiffs(input, workspace);
    return parts.length > 0 || isPast ? parts : rewriteDiff(input, workspace);
  }
}

function contentOf(
  event: ToolCallEvent,
  { diffs, status }: ReportedCall,
  { isFirst, rawBytes }: { readonly isFirst: boolean; readonly rawBytes: number },
): CallOutput {
  if (!isFinal(status)) {
    const message = event.progress?.message;
    if (typeof message === "string") return { content: [...diffs, textContent(message)] };
    return isFirst && diffs.length > 0 ? { content: [...diffs] } : {};
  }
  const blocks = toToolContent(event.content ?? []);
  if (blocks.length === 0 && event.error !== undefined) blocks.push(textContent(errorText(event.error)));
  // A diff of an edit that did not happen would look done.
  const content = status === "completed" ? [...diffs, ...blocks] : blocks;
  const output = event.details ?? { content: event.content ?? [], error: event.error };
  return { content, rawOutput: boundedOutput(output, rawBytes) };
}

function isFinal(status: ToolCallStatus): boolean {
  return status === "completed" || status === "failed";
}

/** Content of tools as ACP takes it; what it has no block for becomes text. */
export function toAcpBlock(block: ContentBlock): AcpBlock {
  const { type, text, data, mimeType, uri, name, resource } = block;
  if (type === "text" && typeof text === "string") return { type, text };
  if ((type === "image" || type === "audio") && typeof data === "string" && typeof mimeType === "string") {
    return { type, data, mimeType };
  }
  if (type === "resource_link" && typeof uri === "string") {
    return { type, uri, name: typeof name === "string" ? name : uri, ...mimeField(mimeType) };
  }
  if (type === "resource" && isJsonObject(resource) && typeof resource["uri"] === "string") {
    const place = { uri: resource["uri"], ...mimeField(resource["mimeType"]) };
    if (typeof resource["text"] === "string") return { type, resource: { ...place, text: resource["text"] } };
    if (typeof resource["blob"] === "string") return { type, resource: { ...place, blob: resource["blob"] } };
  }
  return { type: "text", text: describeBlock(block) };
}

function toToolContent(blocks: readonly ContentBlock[]): ToolCallContent[] {
  return blocks.map((block) => {
    const content = toAcpBlock(block);
    return content.type === "text" ? textContent(stripMarkers(content.text)) : { type: "content", content };
  });
}

function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

function mimeField(value: unknown): { mimeType?: string } {
  return typeof value === "string" ? { mimeType: value } : {};
}

/** Arguments as the common file servers and editors name them. */
const PATH_KEYS = ["path", "file_path", "filePath", "file", "filename", "uri"];
const OLD_KEYS = ["old_text", "oldText", "old_string", "oldString", "old_str"];
const NEW_KEYS = ["new_text", "newText", "new_string", "newString", "new_str"];
const WHOLE_KEYS = ["content", "contents", "text", "file_text"];
/** A diff of a longer file is too long to read. */
const MAX_DIFF_BYTES = 256 * 1024;

/** Pieces of text that are replaced. */
export function editDiffs(input: JsonObject, { cwd }: Workspace): ToolCallContent[] {
  const path = editedPath(input, cwd);
  if (path === undefined) return [];
  const edits = Array.isArray(input["edits"]) ? input["edits"].filter(isJsonObject) : [input];
  return edits.flatMap((edit) => {
    const oldText = firstText(edit, OLD_KEYS);
    const newText = firstText(edit, NEW_KEYS);
    return oldText === undefined || newText === undefined ? [] : [{ type: "diff", path, oldText, newText }];
  });
}

/** A file that is written as a whole, compared with what is on the disk now: ask before the tool runs. */
export function rewriteDiff(input: JsonObject, workspace: Workspace): ToolCallContent[] {
  const path = editedPath(input, workspace.cwd);
  const newText = firstText(input, WHOLE_KEYS);
  if (path === undefined || newText === undefined || newText.length > MAX_DIFF_BYTES) return [];
  const oldText = isReallyInside(path, workspace) ? currentText(path) : undefined;
  // It cannot be read, or is already written: a diff would be wrong.
  if (oldText === undefined || oldText === newText) return [];
  return [{ type: "diff", path, oldText, newText }];
}

/** Null if there is no such file; undefined if it cannot be read. */
function currentText(path: string): string | null | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return null;
    return stat.isFile() && stat.size <= MAX_DIFF_BYTES ? readFileSync(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}

function editedPath(input: JsonObject, cwd: string): string | undefined {
  const given = firstText(input, PATH_KEYS);
  if (given === undefined) return undefined;
  if (!given.startsWith("file:")) return given.includes("://") ? undefined : resolve(cwd, given);
  try {
    return fileURLToPath(given);
  } catch {
    return undefined;
  }
}

function firstText(input: JsonObject, keys: readonly string[]): string | undefined {
  return keys.map((key) => input[key]).find((value) => typeof value === "string");
}

/** Opening line, our own lines and an empty one, the text, and the closing line of the same id. */
const MARKED_TEXT = new RegExp(
  `<<<${MARKER} id="([A-Za-z0-9_-]{8,64})" [^\\n]*>>>\\n(?:[^\\n]+\\n)*\\n([^]*?)\\n<<<END_${MARKER} id="\\1">>>`,
  "g",
);

/** The text without the markers around untrusted content: a client shows whose text it is. */
export function stripMarkers(text: string): string {
  return text.includes(MARKER) ? text.replace(MARKED_TEXT, (_whole, _id, inner: string) => inner) : text;
}

/** A value for programs, without the marks, and not much longer than `maxBytes`. */
export function boundedOutput(value: unknown, maxBytes: number): unknown {
  const shown = mapTexts(value, stripMarkers);
  const json = JSON.stringify(shown) ?? "";
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return shown;
  const note = `The output has ${bytes} bytes as JSON; the beginning and the end are shown.`;
  return { truncated: true, note, json: truncateMiddle(json, maxBytes, "[...]") };
}
