/** Encoded and obfuscated code. */
import { characterSet, runsOf, unitsOf } from "../../../base/character-runs.ts";
import { encodedParts } from "../../../guard/decode.ts";
import { excerptOf } from "../../../base/visible-text.ts";
import { dataFlows } from "../data-flows.ts";
import { type Rule, type Sign, signsOf } from "../rule.ts";
import {
  LINES_PER_SLICE,
  lineAt,
  LineNumbers,
  type ScannedLine,
  type ScannedText,
  scannedText,
} from "../scanned-text.ts";
import { decodes, fetches, pipelines, runsItsInput } from "../shell-commands.ts";
import type { Subject } from "../subject.ts";
import { credentialTheft } from "./credential-theft.ts";
import { downloadAndRun, pipedDownload } from "./downloads.ts";
import { persistence, reverseShell } from "./host-attacks.ts";

const DECODED_AND_RUN = "Encoded text is decoded and run, which hides what it does.";

const SUBSTITUTED =
  /(?:^|[\s;&|("'`/])(?:eval|exec|source|\.|(?:ba|z|da|k)?sh|python[\d.]{0,4}|ruby|perl|node|php)\s{1,4}(?:-{1,2}\w{1,12}\s{1,4}){0,3}["']?\s{0,2}(?:\$\(|`|<\()/;
const HERE_STRING = /(?:^|[\s;&|])(?:(?:ba|z|da)?sh|source|eval)\b.{0,20}<<<\s{0,3}["']?\$\(/;
const POWERSHELL = /\b(?:powershell|pwsh)(?:\.exe)?\b.{0,160}\s[-/](?:e|ec|en|enc\w{0,12})\s{1,4}["']?[a-z0-9+/=]{16,}/;
const POWERSHELL_VARIABLE = /\b(?:powershell|pwsh)(?:\.exe)?\b.{0,160}\s[-/]enc\w{0,12}\s{1,4}["']?\$/;
const RUNS_CODE =
  /\b(?:exec|eval|new function|compile|os\.system|popen|execsync|check_output|check_call|subprocess\.\w{2,12}|loadstring|runincontext|runinthiscontext|child_process\.exec|invoke-expression|iex|_compile)[\s"'`(]{1,4}/;
/** Case-sensitive: in lower case it would match every function. */
const FUNCTION = /(?<![\w.])Function\s{0,2}\([^;{}]{0,120}(?:atob|fromCharCode|Buffer\.from|unescape)\s{0,2}\(/;
const DECODED =
  /b(?:64|32|85|16)decode|a85decode|fromhex\(|unhexlify|zlib\.decompress|lzma\.decompress|gzip\.decompress|\batob\(|buffer\.from\(.{0,4000}["'\s](?:base64|hex)["']|codecs\.decode\(|marshal\.loads|pickle\.loads|frombase64string|base64_decode|decode_base64|decode64|base64\.decode|unpack1?\([\s"']{0,2}[hm]|gzinflate|str_rot13|fromcharcode\(|\bunescape\(|decodeuricomponent\(["']%/;

/** Bytes written as escape sequences. */
const SPELLED = /(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}|\$'\\){3}/;
const MAX_CALL_LENGTH = 2_000;
const MIN_BUNDLED_LENGTH = 1_000;

const DECODE_HINT =
  /base(?:64|32)|openssl|xxd|uudecode|decode|unpack|frombase64|atob|hex2bin|rot13|pack|\brev\b|\btac\b|\btr\b|fromhex|unhexlify|decompress|buffer\.from|loads|gzinflate|fromcharcode|unescape|powershell|pwsh|printf|echo -e|\$'/;

export const encodedCommand: Rule = { hint: DECODE_HINT, find: findEncodedCommands };

function* findEncodedCommands(text: ScannedText): Generator<Sign | undefined> {
  for (const line of text.lines) {
    if (line.number % LINES_PER_SLICE === 0) yield undefined;
    const { plain } = line;
    if (!DECODE_HINT.test(plain)) continue;
    if (runsDecoded(line) || POWERSHELL.test(plain)) {
      yield {
        code: "encoded_command",
        severity: "refuse",
        message: DECODED_AND_RUN,
        line,
        concrete: /[a-z0-9+/=]{24,}/.test(plain),
      };
    } else if (POWERSHELL_VARIABLE.test(plain)) {
      yield { code: "encoded_command", severity: "warn", message: "PowerShell is given an encoded command.", line };
    }
  }
  for (const { source, sink } of yield* dataFlows(text.lines, isDecoded, isRun)) {
    // On a line as long as a bundle's, a name is ambiguous.
    if (
      Math.max(source.plain.length, sink.plain.length) > MIN_BUNDLED_LENGTH ||
      (source === sink && runsDecoded(source))
    )
      continue;
    yield {
      code: "encoded_command",
      severity: "refuse",
      message: `${DECODED_AND_RUN} It is decoded on line ${source.number}.`,
      line: sink,
      concrete: true,
    };
  }
}

function runsDecoded({ plain, raw, text }: ScannedLine): boolean {
  for (const commands of pipelines(plain)) {
    const from = commands.findIndex(decodes);
    if (from !== -1 && commands.slice(from + 1).some(runsItsInput)) return true;
    if (
      from !== -1 &&
      commands
        .slice(from + 1)
        .some((command) => /^\s{0,4}(?:python[\d.]{0,4}|node|perl|ruby)\s{1,4}-[ce]\s.{0,40}exec/.test(command))
    )
      return true;
    if (/\b(?:echo|printf)\b/.test(commands[0] ?? "") && SPELLED.test(text) && commands.slice(1).some(runsItsInput))
      return true;
  }
  const started = SUBSTITUTED.exec(plain) ?? HERE_STRING.exec(plain);
  if (started !== null && plain.slice(started.index).split("|").some(decodes) && !fetches(plain.slice(started.index)))
    return true;
  const run = RUNS_CODE.exec(plain);
  if (run === null) return FUNCTION.test(raw);
  // Within the call, whose payload may be long.
  const call = plain.slice(run.index, run.index + MAX_CALL_LENGTH);
  return DECODED.test(call.split(/[;{}]/, 1)[0] ?? "") || FUNCTION.test(raw);
}

function isDecoded({ plain }: ScannedLine): boolean {
  return DECODE_HINT.test(plain) && (DECODED.test(plain) || decodes(plain));
}

function isRun({ plain }: ScannedLine): boolean {
  return /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bnew function\s{0,2}\(|\b(?:os\.system|os\.popen|execsync)\s{0,2}\(|(?:^|[;&|]\s{0,4})eval\s{1,4}["']?\$|\|\s{0,4}(?:ba|z|da)?sh\s{0,3}$|\b(?:ba|z)?sh\s{1,3}-c\s{1,3}["']?\$|\b(?:iex|invoke-expression)\s{1,3}\(?\$|\|\s{0,3}iex\b/.test(
    plain,
  );
}

// Encoded text anywhere in a file that decodes to a command which another rule refuses.

const COMMAND_RULES: readonly Rule[] = [
  pipedDownload,
  downloadAndRun,
  encodedCommand,
  credentialTheft,
  persistence,
  reverseShell,
];
/** Limits on the encoded text of one file and on one decoded text. */
const MAX_DECODED_LENGTH = 512 * 1024;
const MAX_PART_LENGTH = 16 * 1024;
const MIN_PART_LENGTH = 12;
const BASE64 = characterSet("A-Za-z0-9+/");
const MIN_WIDE_LENGTH = 32;

/** The search for encoded text is fast where there is none. */
export const encodedPayload: Rule = { hint: /(?:)/, find: findEncodedPayloads };

function* findEncodedPayloads(text: ScannedText, subject: Subject): Generator<Sign> {
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
  let room = MAX_DECODED_LENGTH;
  for (const part of encodedParts(raw)) {
    if (part.text.trim().length < MIN_PART_LENGTH) continue;
    room -= part.end - part.start;
    if (room < 0) return;
    yield { start: part.start, end: part.end, plain: part.text.slice(0, MAX_PART_LENGTH) };
  }
  // PowerShell encodes UTF-16.
  for (const run of runsOf(unitsOf(raw), raw.length, BASE64, MIN_WIDE_LENGTH)) {
    const plain = Buffer.from(
      raw.slice(run.start, Math.min(run.end, run.start + 4 * MAX_PART_LENGTH)),
      "base64",
    ).toString("utf16le");
    room -= plain.length;
    if (room < 0) return;
    if (/^[\t\n\r -~]{12,}/.test(plain))
      yield { start: run.start, end: run.end, plain: plain.slice(0, MAX_PART_LENGTH) };
  }
}

function isCommand(plain: string, subject: Subject, depth: number): boolean {
  const decoded: ScannedText = scannedText("", "script", plain);
  for (const rule of COMMAND_RULES) {
    for (const { severity } of signsOf(rule, decoded, subject)) if (severity !== "note") return true;
  }
  // There is no honest reason to encode a download from an IP address.
  if (/\b(?:curl|wget|iwr|invoke-webrequest)\b.{0,100}:\/\/\d/.test(plain.slice(0, 2_000).toLowerCase())) return true;
  if (depth === 0) return false;
  for (const inner of decodedParts(plain)) if (isCommand(inner.plain, subject, depth - 1)) return true;
  return false;
}

// Obfuscated code.

const HEX_NAME = /\b_0x[0-9a-f]{4,8}\b/g;
const PACKED = /\beval\(function\(p,a,c,k,e,[dr]\)/;
const CHARACTERS =
  /(?:\bchr\(\s{0,2}(?:0x)?[\da-f]{1,4}\s{0,2}\)\s{0,3}[+.&,]?\s{0,3}){8,}|\bfromcharcode\(\s{0,2}(?:(?:0x)?[\da-f]{1,4}\s{0,2},\s{0,2}){12,}|(?:\[char\]\s{0,2}(?:0x)?[\da-f]{1,4}\s{0,2}\+?\s{0,2}){8,}/;
const ESCAPES = /(?:\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}){40,}/;
const SPLIT_NAME =
  /\b(?:getattr|__import__|globals\(\)|window|global|globalthis|require|this)\s{0,2}[[(].{0,80}["']\s{0,3}\+\s{0,3}["']/;
const REVERSED =
  /\[::-1\].{0,60}\bexec|\bexec\b.{0,120}\[::-1\]|\breverse\(\)\.join\(.{0,120}\b(?:eval|function)\b|\beval\b.{0,120}\breverse\(\)\.join\(/;
const ONLY_SIGNS = /[[\]()!+]{300,}/;
const RUNS =
  /\b(?:eval|exec|new function|child_process|require|execsync|subprocess|os\.system|popen|fetch|xmlhttprequest|urlopen|requests|importlib|__import__|iex|invoke-expression|execscript)\b|(?<![\w.])function\s{0,2}\(/;

export const obfuscatedCode: Rule = {
  hint: /_0x|eval\(|chr\(|fromcharcode|\[char\]|\\x[0-9a-f]{2}|\\u00|::-1|reverse\(\)|!\[\]|getattr|__import__|globals|["']\s{0,3}\+\s{0,3}["']/,
  find: findObfuscatedCode,
};

function* findObfuscatedCode(text: ScannedText): Generator<Sign> {
  if (text.kind === "data") return;
  yield* hexNames(text);
  let runner: boolean | undefined;
  for (const line of text.lines) {
    const { text: words, plain } = line;
    if (PACKED.test(words) || ONLY_SIGNS.test(words) || REVERSED.test(words)) yield obfuscationSign("refuse", line);
    else if (CHARACTERS.test(words) || ESCAPES.test(words))
      yield obfuscationSign(RUNS.test(plain) || (runner ??= text.lines.some(isRunner)) ? "refuse" : "warn", line);
    else if (SPLIT_NAME.test(words) && /\b(?:system|exec|eval|popen|child_process|subprocess|spawn)\b/.test(plain))
      yield obfuscationSign("refuse", line);
  }
}

function isRunner({ plain }: ScannedLine): boolean {
  return /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bos\.system\(|\bchild_process\b|\bsubprocess\.|\bnew function\(|\binvoke-expression\b/.test(
    plain,
  );
}

function* hexNames(text: ScannedText): Generator<Sign> {
  let count = 0;
  let first: ScannedLine | undefined;
  let runs = false;
  for (const line of text.lines) {
    if (line.text.includes("_0x")) {
      first ??= line;
      for (const _ of line.text.matchAll(HEX_NAME)) count += 1;
    }
    runs ||= RUNS.test(line.text);
  }
  if (first !== undefined && count >= 12)
    yield obfuscationSign(runs || text.kind === "script" ? "refuse" : "warn", first);
}

function obfuscationSign(severity: Sign["severity"], line: ScannedLine): Sign {
  return {
    code: "obfuscated_code",
    severity,
    message: "Code is obfuscated, which hides what it does.",
    line,
    concrete: true,
  };
}
