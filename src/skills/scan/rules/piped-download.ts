/** What is downloaded is run at once, by a shell or by a language's own `exec`. */
import { type Address, type AddressKind, addressesIn, fetchedFrom, isOutside } from "../addresses.ts";
import { mayFetch, pipelines, runsItsInput } from "../commands.ts";
import { flows } from "../flows.ts";
import type { ScannedLine, ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { judgeSource } from "../source-severity.ts";
import type { Subject } from "../subject.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const MAY_FETCH =
  /curl|wget|iwr|irm|invoke-|webclient|aria2c|lynx|httpie|axel|fetch|urlopen|requests\.|axios|http|mshta|certutil|regsvr32|bitsadmin|msiexec/;

/** `bash -c "$(curl …)"`, `bash <(curl …)`, `eval "$(wget …)"`, `source <(curl …)`. */
const SUBSTITUTED =
  /(?:^|[\s;&|("'`/])(?:eval|exec|source|\.|(?:ba|z|da|k)?sh|python[\d.]{0,4}|ruby|perl|node|php|iex|invoke-expression)\s{1,4}(?:-{1,2}\w{1,12}\s{1,4}){0,3}["']?\s{0,2}(?:\$\(|`|<\()\s{0,4}(?:sudo\s{1,4})?(?:curl|wget|fetch|lynx)\s/;
/** The output of a download as a command of its own. */
const AS_COMMAND = /^\s{0,20}\$\(\s{0,4}(?:curl|wget)\s.{0,300}\)\s{0,4}$/;
/** `source /dev/stdin <<< "$(curl …)"`. */
const HERE_STRING =
  /(?:^|[\s;&|/])(?:(?:ba|z|da)?sh|source|eval|\.)[^\w].{0,30}<<<\s{0,3}["']?\$\(\s{0,3}(?:curl|wget)\s/;
const POWERSHELL =
  /\b(?:iex|invoke-expression)\b.{0,160}(?:\biwr\b|\birm\b|\bcurl\b|invoke-webrequest|invoke-restmethod|downloadstring|downloaddata)|\.downloadstring\(.{0,200}\|\s{0,3}(?:iex|invoke-expression)\b/;
const LANGUAGE =
  /\b(?:exec|eval|compile|new function|vm\.runin\w{1,16}|_compile)\s{0,3}\(.{0,160}(?:requests\.get|urlopen|urllib|httpx\.get|http\.get|https\.get|fetch\(|axios|open-uri|file_get_contents\(["']?http)/;
/** `x=$(curl …); eval "$x"`, and the same by a pipe or a here string. */
const KEPT_AND_RUN =
  /(?:^|[\s;&|({`])([a-z_]\w{0,40})=["']?(?:\$\(|`)\s{0,4}(?:sudo\s{1,4})?(?:curl|wget|fetch|lynx)\s.{1,400}?(?:;|&&)(?:.{0,80}[\s;&])?(?:(?:eval|source|\.|(?:ba|z|da|k)?sh\s{1,4}-\w{0,4}c)\s{1,4}["']?\$\{?\1\b|(?:ba|z|da|k)?sh\s{0,4}<<<\s{0,4}["']?\$\{?\1\b|(?:echo|printf)\b.{0,20}\$\{?\1\b.{0,4}\|\s{0,4}(?:sudo\s{1,4})?(?:ba|z|da|k)?sh\b)/;
const SCRIPT_BLOCK =
  /\[scriptblock\]::create\(.{0,160}(?:\biwr\b|\birm\b|\bcurl\b|invoke-webrequest|invoke-restmethod|downloadstring|downloaddata)/;
const OTHER = /\bdeno\s{1,3}run\b.{0,80}https?:|\.then\(\s{0,2}eval\s{0,2}\)|\beval\s{1,3}get\(/;
const WINDOWS =
  /\bmshta(?:\.exe)?\s{1,4}["']?(?:https?:|javascript:|vbscript:)|\bregsvr32\b.{0,60}\/i:["']?https?:|\brundll32\b.{0,80}https?:|\bmsiexec(?:\.exe)?\b.{0,60}\/i\s{0,3}["']?https?:|\bcertutil(?:\.exe)?\b.{0,60}-urlcache.{0,200}(?:&&|;|&)\s{0,3}\S|\bbitsadmin\b.{0,200}(?:&&|;|&)\s{0,3}\S/;

/** Places that a guide names for want of a real one. */
const NOWHERE = new Set<AddressKind>(["local", "private", "example", "example number"]);

export const pipedDownload: Rule = { hint: MAY_FETCH, find };

function* find(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (!MAY_FETCH.test(line.plain)) continue;
    const sources = sourcesIn(line);
    if (sources === undefined) continue;
    const { severity, why } = judgeSource(sources, { text, line, index, subject });
    const sign: Sign = {
      code: "piped_download",
      severity,
      message: `A download is run without being looked at: it is fetched ${why}.`,
      line,
      concrete: sources.some(({ kind }) => !NOWHERE.has(kind)),
    };
    yield sign;
  }
  if (text.kind === "data" || !MAY_RUN.test(text.all)) return;
  const lines = text.kind === "script" ? text.lines : text.lines.filter(({ fenced }) => fenced);
  let everywhere: readonly Address[] | undefined;
  for (const { source, sink } of yield* flows(
    lines,
    ({ plain }) => FETCHES_CODE.test(plain),
    ({ plain }) => RUNS_CODE.test(plain),
  )) {
    // What one line does is judged above.
    if (source === sink) continue;
    const addresses = text.kind === "script" ? (everywhere ??= outside(lines)) : outside([source]);
    if (addresses.length === 0) continue;
    yield {
      code: "piped_download",
      severity: addresses.every(({ kind }) => kind === "installer") ? "warn" : "refuse",
      message: `A program runs what it fetches on line ${source.number}, whatever that is.`,
      line: sink,
      concrete: true,
    };
  }
}

function outside(lines: readonly ScannedLine[]): readonly Address[] {
  const found: Address[] = [];
  for (const { plain } of lines) {
    if (plain.includes("://")) found.push(...addressesIn(plain).filter(isOutside));
    if (found.length >= MOST_ADDRESSES) break;
  }
  return found;
}

const MOST_ADDRESSES = 500;
const FETCHES_CODE =
  /\brequests\.get\(|\burlopen\(|\bhttpx\.get\(|\bfetch\(|\baxios\.get\(|\baxios\(|\bhttps?\.get\(|\bgot\(|\.get\(\s{0,2}["'`]https?:|downloadstring\(|\bnet::http\b|\$\(\s{0,2}(?:curl|wget)\s/;
const RUNS_CODE =
  /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bnew function\s{0,2}\(|\bvm\.runin\w{1,16}\(|(?:^|[;&|]\s{0,4})eval\s{1,4}["']?\$|\b(?:iex|invoke-expression)\s{1,3}\(?\$|\b(?:ba|z)?sh\s{1,3}-c\s{1,3}["']?\$|\|\s{0,4}(?:ba|z|da)?sh\s{0,3}$|\bcompile\(\w{1,40},/;
const MAY_RUN = /\b(?:exec|eval|new function|runin|iex|invoke-expression|sh)\b/;

/** Where it is fetched from; undefined if nothing is fetched and run. */
function sourcesIn({ plain, text }: ScannedLine): readonly Address[] | undefined {
  for (const commands of pipelines(plain)) {
    const from = commands.findIndex(mayFetch);
    if (from === -1) continue;
    if (commands.slice(from + 1).some(runsItsInput)) return fetchedFrom(commands.slice(0, from + 1).join(" "));
  }
  if (SUBSTITUTED.test(plain) || AS_COMMAND.test(plain) || HERE_STRING.test(plain)) {
    const from = plain.search(/\b(?:curl|wget|fetch|lynx)\s/);
    return fetchedFrom(plain.slice(from));
  }
  // A name that stands for an output has no value to be put in its place.
  if (text.includes("=") && KEPT_AND_RUN.test(text)) return fetchedFrom(plain);
  return POWERSHELL.test(plain) ||
    SCRIPT_BLOCK.test(plain) ||
    LANGUAGE.test(plain) ||
    OTHER.test(plain) ||
    WINDOWS.test(plain)
    ? addressesIn(plain)
    : undefined;
}
