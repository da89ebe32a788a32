/** The text of a file, if it is one, and what part an agent gives it. */
import type { TextKind } from "./places.ts";

const INSTRUCTIONS = /\.(?:md|mdx|markdown|txt|rst|adoc|html?|skill|prompt|mdc)$/i;
const SCRIPT =
  /\.(?:sh|bash|zsh|fish|ksh|command|py|pyw|js|mjs|cjs|jsx|ts|mts|cts|tsx|rb|pl|pm|php|ps1|psm1|psd1|bat|cmd|vbs|vbe|hta|lua|go|rs|swift|applescript|scpt|r|jl|java|kt|cs|plist|service|desktop|mk)$|(?:^|\/)(?:makefile|dockerfile|justfile|rakefile|procfile|vagrantfile|\.?(?:bash|zsh)rc|\.?profile|(?:pre|post)-[\w-]{1,30})$/i;

export function textKind(path: string, text: string): TextKind {
  if (SCRIPT.test(path)) return "script";
  if (text.startsWith("#!")) return "script";
  if (INSTRUCTIONS.test(path) || !/\.[a-z0-9]{1,12}$/i.test(path)) return "instructions";
  return "data";
}

const SAMPLE = 8_192;
/** One in so many characters may be one that no text has. */
const ODD = 8;
const ODD_WITH_NULS = 50;

export interface FileText {
  readonly text: string;
  readonly kind: TextKind;
  /** It reads as text. A script that does not is read all the same: a shell stops at the first line that ends it. */
  readonly isText: boolean;
  /** NUL characters were in it. Shells and other languages pass over them; whoever takes them for a sign of no text sees nothing. */
  readonly nuls: boolean;
}

/** Undefined for what is no text, neither by its bytes nor by its name or first line. */
export function readText(path: string, bytes: Uint8Array): FileText | undefined {
  const decoded = decode(bytes);
  const nuls = decoded.includes("\0");
  const text = nuls ? decoded.replaceAll("\0", "") : decoded;
  const kind = textKind(path, text);
  const isText = !isOdd(text, nuls);
  if (!isText && kind !== "script") return undefined;
  return { text, kind, isText, nuls };
}

function decode(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  return new TextDecoder("utf-8", { ignoreBOM: false }).decode(bytes);
}

/** Some text in an old encoding has odd bytes; a picture has little else. With NULs in it, control characters count too. */
function isOdd(text: string, nuls: boolean): boolean {
  let odd = 0;
  const sample = text.slice(0, SAMPLE);
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  for (const _ of sample.matchAll(nuls ? /[\u0001-\u0008\u000e-\u001a\u001c-\u001f\ufffd]/g : /\ufffd/g)) odd += 1;
  return odd * (nuls ? ODD_WITH_NULS : ODD) > sample.length || (nuls && sample === "");
}
