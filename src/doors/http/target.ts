/** Takes a request's target apart, and refuses every spelling that two programs could read in two ways. */
import { ToolcribError } from "../../model/errors.ts";

export interface Target {
  /** Decoded; without the slash at its end, except for the root. */
  readonly path: string;
  /** With its question mark; empty if there is none. */
  readonly search: string;
}

/** Nothing to decode and nothing to doubt, once dot segments and empty ones are ruled out. */
const PLAIN = /^(?:\/[A-Za-z0-9_~@-][A-Za-z0-9._~@-]*)*\/?$/;
const BELOW_SPACE_OR_DEL = 0x20;
const DEL = 0x7f;

export function parseTarget(target: string): Target {
  const queryAt = target.indexOf("?");
  const raw = queryAt === -1 ? target : target.slice(0, queryAt);
  const search = queryAt === -1 ? "" : target.slice(queryAt);
  // `http://host/…` and `*` too: what counts is the Host header alone.
  if (!raw.startsWith("/")) throw refused("begin with /");
  const path = PLAIN.test(raw) ? raw : decoded(raw);
  return { path: path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path, search };
}

function decoded(raw: string): string {
  if (/%(?:2f|5c|00)/i.test(raw)) throw refused("hold no encoded slash");
  let path: string;
  try {
    path = decodeURIComponent(raw);
  } catch {
    throw refused("be encoded as UTF-8");
  }
  // What still looks encoded was encoded twice, so that somebody further on would decode it.
  if (/%[0-9a-f]{2}/i.test(path)) throw refused("be encoded only once");
  if (path.includes("\\") || path.includes("#") || hasControl(path))
    throw refused("hold no \\, # or control character");
  const segments = path.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  // Also with spaces around them, which many cut off.
  if (segments.some((segment) => ["", ".", ".."].includes(segment.trim()))) {
    throw refused("hold no empty segment, . or ..");
  }
  return path;
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < BELOW_SPACE_OR_DEL || code === DEL) return true;
  }
  return false;
}

function refused(must: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `The path of a request must ${must}.`);
}
