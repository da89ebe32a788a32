/** Reads resources, and results that were too long to be given whole, piece by piece. */
import { unwrapUntrusted, wrapUntrusted } from "../../guard/wrap/wrap.ts";
import type { Hub } from "../../hub/hub.ts";
import { describeBlock, formatBytes } from "../../model/content.ts";
import { errorTextForModel } from "../../model/error-text.ts";
import type { ContentBlock, ResourceContents } from "../../model/protocol.ts";
import type { Tool } from "../../model/tool.ts";
import type { Session } from "../../sessions/session.ts";
import { askScope } from "./ask-scope.ts";

export const READ_TOOL = "toolcrib_read";

/** Left for the boundary and the note around a piece. */
const FRAME_BYTES = 1024;

/** @param resultBytes What a piece must stay below, so that it is not cut once more. */
export function readTool(hub: Hub, session: Session, resultBytes: () => number): Tool {
  return {
    name: READ_TOOL,
    label: "Read resource",
    description:
      "Read a resource by its URI: of a server, of a skill, or the whole of a result that was cut (toolcrib://results/…). " +
      "Long text comes in pieces; the answer says where the next one begins.",
    parameters: {
      type: "object",
      properties: {
        uri: { type: "string", minLength: 1 },
        offset: { type: "integer", minimum: 0, description: "Characters to skip; 0 if absent." },
        length: { type: "integer", minimum: 1, description: "Most characters to return; as many as fit if absent." },
      },
      required: ["uri"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true },
    async execute(_toolCallId, params, signal) {
      const outcome = await hub.read(session, {
        uri: String(params["uri"]),
        signal,
        audience: "agent",
        onAsk: askScope.getStore(),
      });
      if (!outcome.ok) {
        const { error } = outcome;
        return { content: [{ type: "text", text: errorTextForModel(error) }], details: { error }, isError: true };
      }
      const piece = {
        offset: Number(params["offset"] ?? 0),
        length: Number(params["length"] ?? Infinity),
        bytes: Math.max(FRAME_BYTES, resultBytes() - FRAME_BYTES),
      };
      const content = outcome.result.contents.flatMap((contents) => blocksOf(contents, piece));
      return { content: content.length > 0 ? content : [{ type: "text", text: "(empty resource)" }] };
    },
  };
}

interface Piece {
  readonly offset: number;
  readonly length: number;
  readonly bytes: number;
}

function blocksOf({ text, blob, mimeType, uri }: ResourceContents, piece: Piece): ContentBlock[] {
  if (typeof text === "string") return [{ type: "text", text: pieceOf(text, piece) }];
  if (typeof blob !== "string") return [];
  const media = { type: "image", data: blob, mimeType };
  if (typeof mimeType === "string" && mimeType.startsWith("image/")) return [media];
  const shown = describeBlock({ type: "resource", resource: { uri } });
  return [{ type: "text", text: `${shown} ${formatBytes(Buffer.byteLength(blob, "base64"))} that are no text.` }];
}

/** What an untrusted server wrote stays between its markers, whichever piece of it is read. */
function pieceOf(whole: string, piece: Piece): string {
  const wrapped = unwrapUntrusted(whole);
  const text = wrapped?.text ?? whole;
  const cut = fitting(text.slice(piece.offset, piece.offset + piece.length).toWellFormed(), piece.bytes);
  const end = piece.offset + cut.length;
  const framed = wrapped === undefined ? cut : wrapUntrusted(cut, wrapped);
  if (piece.offset === 0 && end >= text.length) return framed;
  const rest = end < text.length ? ` Go on with offset ${end}.` : " That is the end.";
  return `${framed}\n[Characters ${Math.min(piece.offset, text.length)} to ${end} of ${text.length}.${rest}]`;
}

/** The longest beginning that has at most so many bytes in UTF-8; never half a character. */
function fitting(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.min(bytes, text.length * 3)));
  return text.slice(0, read);
}
