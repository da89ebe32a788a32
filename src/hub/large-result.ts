/** A tool's result that is too large to hand out: kept for the session, with a short result that says where it is. */
import { markOf, UNTRUSTED_KEY } from "../guard/untrusted-mark.ts";
import { unwrapUntrusted, wrapUntrusted } from "../guard/wrap/wrap.ts";
import { describeBlock, formatBytes } from "../model/content.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { CallToolResult, ContentBlock, Result } from "../model/protocol.ts";
import type { Session } from "../sessions/session.ts";

/** Larger ones are refused: no session keeps more. */
export const LARGEST_KEPT = 64 * 1024 * 1024;
/** Of the text, in the short result. */
const BEGINNING_BYTES = 2048;

export interface LargeResult {
  readonly session: Session;
  readonly callId: string;
  /** The public name of the tool. */
  readonly name: string;
  /** As the guard and the hooks have left it. */
  readonly result: Result;
  readonly bytes: number;
  readonly limit: number;
  /** The tool promises structured content, which a short result cannot have. */
  readonly promisesStructure: boolean;
}

export function keepLargeResult(large: LargeResult): CallToolResult {
  const { session, callId, name, result } = large;
  const { text, mimeType } = wholeText(result);
  const meta = ownMeta(result);
  const uri = session.results.keep(callId, text, { mimeType, meta });
  const size = Buffer.byteLength(text);
  const note =
    `The result of ${name} has ${formatBytes(large.bytes)}, more than the ${formatBytes(large.limit)} that are handed out. ` +
    `The whole of it is kept for this session as the resource ${uri} (${mimeType}, ${formatBytes(size)}). It begins:`;
  // Clients that check results refuse one without the promised structure, unless it is an error.
  const isError = result["isError"] === true || large.promisesStructure;
  return {
    ...(typeof result["resultType"] === "string" ? { resultType: result["resultType"] } : {}),
    content: [
      { type: "text", text: `${note}\n\n${beginning(result, text)}` },
      { type: "resource_link", uri, name: `Result of ${name}`, mimeType, size },
    ],
    ...(isError ? { isError } : {}),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

const TEXT_ONLY: ReadonlySet<string> = new Set(["content", "isError", "resultType", "_meta"]);

function wholeText(result: Result): { readonly text: string; readonly mimeType: string } {
  const blocks = blocksOf(result);
  const isText = blocks.length > 0 && blocks.every(({ type, text }) => type === "text" && typeof text === "string");
  if (isText && Object.keys(result).every((key) => TEXT_ONLY.has(key))) {
    return { text: blocks.map(({ text }) => text).join("\n\n"), mimeType: "text/plain" };
  }
  // The marks are given with each read.
  const { _meta: meta, ...rest } = result;
  const theirs = isJsonObject(meta) ? Object.entries(meta).filter(([key]) => !isOwnKey(key)) : [];
  const whole = theirs.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(theirs) };
  return { text: JSON.stringify(whole), mimeType: "application/json" };
}

/** About 2 KB of what a person or a model would read, inside the boundary where the texts are. */
function beginning(result: Result, whole: string): string {
  let text = "";
  for (const block of blocksOf(result)) {
    const said = describeBlock(block);
    text += (text === "" ? "" : "\n\n") + (unwrapUntrusted(said)?.text ?? said);
    if (text.length > BEGINNING_BYTES) break;
  }
  const start = firstBytes(text === "" ? whole : text);
  const mark = markOf(result);
  if (mark?.boundary === undefined) return start;
  const { boundary: id, server, tool, findings } = mark;
  return wrapUntrusted(start, { id, server, tool, findings });
}

function firstBytes(text: string): string {
  const bytes = Buffer.from(text.slice(0, BEGINNING_BYTES));
  const cut = text.length > BEGINNING_BYTES || bytes.length > BEGINNING_BYTES ? "…" : "";
  // A character that was cut in two decodes to replacement marks.
  return bytes.toString("utf8", 0, BEGINNING_BYTES).replace(/\ufffd+$/, "") + cut;
}

function blocksOf({ content }: Result): ContentBlock[] {
  // Blocks may lack a `type`; whoever reads one treats it as a type that nobody knows.
  return Array.isArray(content) ? (content.filter(isJsonObject) as ContentBlock[]) : [];
}

/** What we wrote into `_meta`: the mark, and what hooks noted. */
function ownMeta({ _meta: meta }: Result): JsonObject | undefined {
  const own = isJsonObject(meta) ? Object.entries(meta).filter(([key]) => isOwnKey(key)) : [];
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

function isOwnKey(key: string): boolean {
  return key === UNTRUSTED_KEY || key === "toolcrib/notes";
}
