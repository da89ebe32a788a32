/** Encoded text anywhere in a file that decodes to a command which another rule refuses: nobody honest hides one. */
import { encodedParts } from "../../../guard/detect/decode.ts";
import { characterSet, nextRun } from "../../../guard/detect/runs.ts";
import { excerptOf } from "../../../guard/detect/show-hidden.ts";
import { LineNumbers } from "../line-numbers.ts";
import { lineAt, type ScannedText, scannedText } from "../scanned-text.ts";
import type { Subject } from "../subject.ts";
import { credentialTheft } from "./credential-theft.ts";
import { downloadAndRun } from "./download-and-run.ts";
import { encodedCommand } from "./encoded-command.ts";
import { persistence } from "./persistence.ts";
import { pipedDownload } from "./piped-download.ts";
import { reverseShell } from "./reverse-shell.ts";
import type { Sign } from "../sign.ts";
import { type Rule, signsOf } from "./rule.ts";

const COMMANDS: readonly Rule[] = [
  pipedDownload,
  downloadAndRun,
  encodedCommand,
  credentialTheft,
  persistence,
  reverseShell,
];
/** Characters of encoded text that are decoded in one file, and of one decoded text that are read. */
const MOST_DECODED = 512 * 1024;
const LONGEST = 16 * 1024;
const SHORTEST = 12;
const BASE64 = characterSet("A-Za-z0-9+/");
const WIDE = 32;

/** The search for encoded text is fast where there is none. */
export const encodedPayload: Rule = { hint: /(?:)/, find };

function* find(text: ScannedText, subject: Subject): Generator<Sign> {
  let numbers: LineNumbers | undefined;
  for (const { start, end, plain } of decodedParts(text.raw)) {
    if (!isCommand(plain, subject, 1)) continue;
    const line = lineAt(text, (numbers ??= new LineNumbers(text.raw)).of(start));
    if (line === undefined) continue;
    yield {
      code: "encoded_command",
      severity: "refuse",
      message: `Encoded text hides a command: "${excerptOf(plain, 0, Math.min(plain.length, 100))}".`,
      line,
      near: text.raw.slice(start, Math.min(end, start + 40)),
      concrete: true,
    };
  }
}

interface Decoded {
  readonly start: number;
  readonly end: number;
  readonly plain: string;
}

function* decodedParts(raw: string): Generator<Decoded> {
  let room = MOST_DECODED;
  for (const part of encodedParts(raw)) {
    if (part === undefined || part.text.trim().length < SHORTEST) continue;
    room -= part.end - part.start;
    if (room < 0) return;
    yield { start: part.start, end: part.end, plain: part.text.slice(0, LONGEST) };
  }
  // PowerShell encodes text of two bytes a character, of which every second one is zero.
  for (let run = nextRun(raw, BASE64, WIDE, 0); run !== undefined; run = nextRun(raw, BASE64, WIDE, run.end)) {
    const plain = Buffer.from(raw.slice(run.start, Math.min(run.end, run.start + 4 * LONGEST)), "base64").toString(
      "utf16le",
    );
    room -= plain.length;
    if (room < 0) return;
    if (/^[\t\n\r -~]{12,}/.test(plain)) yield { start: run.start, end: run.end, plain: plain.slice(0, LONGEST) };
  }
}

function isCommand(plain: string, subject: Subject, depth: number): boolean {
  const decoded: ScannedText = scannedText("", "script", plain);
  for (const rule of COMMANDS) {
    for (const { severity } of signsOf(rule, decoded, subject)) if (severity !== "note") return true;
  }
  // What only fetches, at a bare address, is worth no encoding either.
  if (/\b(?:curl|wget|iwr|invoke-webrequest)\b.{0,100}:\/\/\d/.test(plain.slice(0, 2_000).toLowerCase())) return true;
  if (depth === 0) return false;
  for (const inner of decodedParts(plain)) if (isCommand(inner.plain, subject, depth - 1)) return true;
  return false;
}
