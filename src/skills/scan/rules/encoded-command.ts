/** Something unreadable is decoded and run. */
import { decodes, fetches, pipelines, runsItsInput } from "../commands.ts";
import { flows } from "../flows.ts";
import type { ScannedLine, ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const MESSAGE = "Something encoded is decoded and run, so that nobody sees beforehand what it does.";

const SUBSTITUTED =
  /(?:^|[\s;&|("'`/])(?:eval|exec|source|\.|(?:ba|z|da|k)?sh|python[\d.]{0,4}|ruby|perl|node|php)\s{1,4}(?:-{1,2}\w{1,12}\s{1,4}){0,3}["']?\s{0,2}(?:\$\(|`|<\()/;
const HERE_STRING = /(?:^|[\s;&|])(?:(?:ba|z|da)?sh|source|eval)\b.{0,20}<<<\s{0,3}["']?\$\(/;
const POWERSHELL = /\b(?:powershell|pwsh)(?:\.exe)?\b.{0,160}\s[-/](?:e|ec|en|enc\w{0,12})\s{1,4}["']?[a-z0-9+/=]{16,}/;
const POWERSHELL_VARIABLE = /\b(?:powershell|pwsh)(?:\.exe)?\b.{0,160}\s[-/]enc\w{0,12}\s{1,4}["']?\$/;
const RUNS_CODE =
  /\b(?:exec|eval|new function|compile|os\.system|popen|execsync|check_output|check_call|subprocess\.\w{2,12}|loadstring|runincontext|runinthiscontext|child_process\.exec|invoke-expression|iex|_compile)[\s"'`(]{1,4}/;
/** In lower case it is every function. */
const FUNCTION = /(?<![\w.])Function\s{0,2}\([^;{}]{0,120}(?:atob|fromCharCode|Buffer\.from|unescape)\s{0,2}\(/;
const DECODED =
  /b(?:64|32|85|16)decode|a85decode|fromhex\(|unhexlify|zlib\.decompress|lzma\.decompress|gzip\.decompress|\batob\(|buffer\.from\(.{0,4000}["'\s](?:base64|hex)["']|codecs\.decode\(|marshal\.loads|pickle\.loads|frombase64string|base64_decode|decode_base64|decode64|base64\.decode|unpack1?\([\s"']{0,2}[hm]|gzinflate|str_rot13|fromcharcode\(|\bunescape\(|decodeuricomponent\(["']%/;

/** Bytes written as numbers, before they are read. */
const SPELLED = /(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}|\$'\\){3}/;
const CALL = 2_000;
const BUNDLED = 1_000;

const HINT =
  /base(?:64|32)|openssl|xxd|uudecode|decode|unpack|frombase64|atob|hex2bin|rot13|pack|\brev\b|\btac\b|\btr\b|fromhex|unhexlify|decompress|buffer\.from|loads|gzinflate|fromcharcode|unescape|powershell|pwsh|printf|echo -e|\$'/;

export const encodedCommand: Rule = { hint: HINT, find };

function* find(text: ScannedText): Generator<Sign | undefined> {
  for (const line of text.lines) {
    if (line.number % LINES_PER_TURN === 0) yield undefined;
    const { plain } = line;
    if (!HINT.test(plain)) continue;
    if (runsDecoded(line) || POWERSHELL.test(plain)) {
      yield {
        code: "encoded_command",
        severity: "refuse",
        message: MESSAGE,
        line,
        concrete: /[a-z0-9+/=]{24,}/.test(plain),
      };
    } else if (POWERSHELL_VARIABLE.test(plain)) {
      yield { code: "encoded_command", severity: "warn", message: "PowerShell is given an encoded command.", line };
    }
  }
  for (const { source, sink } of yield* flows(text.lines, isDecoded, isRun)) {
    // In a line as long as a bundle's a name means many things.
    if (Math.max(source.plain.length, sink.plain.length) > BUNDLED || (source === sink && runsDecoded(source)))
      continue;
    yield {
      code: "encoded_command",
      severity: "refuse",
      message: `${MESSAGE} It is decoded on line ${source.number}.`,
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
  const call = plain.slice(run.index, run.index + CALL);
  return DECODED.test(call.split(/[;{}]/, 1)[0] ?? "") || FUNCTION.test(raw);
}

function isDecoded({ plain }: ScannedLine): boolean {
  return HINT.test(plain) && (DECODED.test(plain) || decodes(plain));
}

function isRun({ plain }: ScannedLine): boolean {
  return /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bnew function\s{0,2}\(|\b(?:os\.system|os\.popen|execsync)\s{0,2}\(|(?:^|[;&|]\s{0,4})eval\s{1,4}["']?\$|\|\s{0,4}(?:ba|z|da)?sh\s{0,3}$|\b(?:ba|z)?sh\s{1,3}-c\s{1,3}["']?\$|\b(?:iex|invoke-expression)\s{1,3}\(?\$|\|\s{0,3}iex\b/.test(
    plain,
  );
}
