/** Downloads that are run: at once, a few lines later, or as a package. */
import { type Address, addressesIn, type AddressKind, fetchedFrom, isOutside, isSuspicious } from "../addresses.ts";
import { dataFlows } from "../data-flows.ts";
import { lineRule, type Rule, type Sign } from "../rule.ts";
import { LINES_PER_SLICE, linesAround, type ScannedLine, type ScannedText, type TextKind } from "../scanned-text.ts";
import { fetches, mayFetch, pipelines, runsItsInput } from "../shell-commands.ts";
import { describeAddress, sourceRisk } from "../source-risk.ts";
import type { Subject } from "../subject.ts";

const MAY_FETCH =
  /curl|wget|iwr|irm|invoke-|webclient|aria2c|lynx|httpie|axel|fetch|urlopen|requests\.|axios|http|mshta|certutil|regsvr32|bitsadmin|msiexec/;

/** `bash -c "$(curl …)"`, `bash <(curl …)`, `eval "$(wget …)"`, `source <(curl …)`. */
const SUBSTITUTED =
  /(?:^|[\s;&|("'`/])(?:eval|exec|source|\.|(?:ba|z|da|k)?sh|python[\d.]{0,4}|ruby|perl|node|php|iex|invoke-expression)\s{1,4}(?:-{1,2}\w{1,12}\s{1,4}){0,3}["']?\s{0,2}(?:\$\(|`|<\()\s{0,4}(?:sudo\s{1,4})?(?:curl|wget|fetch|lynx)\s/;
/** The output of a download as a command. */
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

/** Addresses that guides use as examples. */
const NOWHERE = new Set<AddressKind>(["local", "private", "example", "example number"]);

const FETCHES_TEXT =
  /\brequests\.get\(|\burlopen\(|\bhttpx\.get\(|\bfetch\(|\baxios\.get\(|\baxios\(|\bhttps?\.get\(|\bgot\(|\.get\(\s{0,2}["'`]https?:|downloadstring\(|\bnet::http\b|\$\(\s{0,2}(?:curl|wget)\s/;
const RUNS_CODE =
  /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bnew function\s{0,2}\(|\bvm\.runin\w{1,16}\(|(?:^|[;&|]\s{0,4})eval\s{1,4}["']?\$|\b(?:iex|invoke-expression)\s{1,3}\(?\$|\b(?:ba|z)?sh\s{1,3}-c\s{1,3}["']?\$|\|\s{0,4}(?:ba|z|da)?sh\s{0,3}$|\bcompile\(\w{1,40},/;
const MAY_RUN = /\b(?:exec|eval|new function|runin|iex|invoke-expression|sh)\b/;
export const pipedDownload: Rule = { hint: MAY_FETCH, find: findPipedDownloads };

function* findPipedDownloads(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    if (!MAY_FETCH.test(line.plain)) continue;
    const sources = sourcesIn(line);
    if (sources === undefined) continue;
    const { severity, why } = sourceRisk(sources, { text, line, index, subject });
    const sign: Sign = {
      code: "piped_download",
      severity,
      message: `A download is run without being checked: it is fetched ${why}.`,
      line,
      concrete: sources.some(({ kind }) => !NOWHERE.has(kind)),
    };
    yield sign;
  }
  if (text.kind === "data" || !MAY_RUN.test(text.all)) return;
  const lines = text.kind === "script" ? text.lines : text.lines.filter(({ fenced }) => fenced);
  let everywhere: readonly Address[] | undefined;
  for (const { source, sink } of yield* dataFlows(
    lines,
    ({ plain }) => FETCHES_TEXT.test(plain),
    ({ plain }) => RUNS_CODE.test(plain),
  )) {
    // Single lines are handled above.
    if (source === sink) continue;
    const near = text.kind === "script" ? (everywhere ??= addressesOf(lines)) : addressesOf([source]);
    const addresses = near.filter(isOutside);
    if (addresses.length === 0) continue;
    yield {
      code: "piped_download",
      severity: addresses.every(({ kind }) => kind === "installer") ? "warn" : "refuse",
      message: `A program runs whatever it fetches on line ${source.number}.`,
      line: sink,
      concrete: true,
    };
  }
}

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
  // A variable with the output of a command has no known value.
  if (text.includes("=") && KEPT_AND_RUN.test(text)) return fetchedFrom(plain);
  return POWERSHELL.test(plain) ||
    SCRIPT_BLOCK.test(plain) ||
    LANGUAGE.test(plain) ||
    OTHER.test(plain) ||
    WINDOWS.test(plain)
    ? addressesIn(plain)
    : undefined;
}

// Downloaded, then run a few lines later. Ordinary for a project's releases, suspicious from elsewhere.

const LINES_TO_RUN = 12;
/** `-o file`, `-O file`, `--output file`, `> file`, `-OutFile file`, `-destination file`. */
const SAVED_AS =
  /(?:\s-[a-z]{0,6}o|\s--output(?:-document)?|\s-outfile|\s-destination|\s-d|>)[\s=]{1,3}["']?([^\s"'`;|&)]{1,120})/;
const LANGUAGE_SAVE = /\b(?:urlretrieve|downloadfile)\s{0,3}\([^,\n]{1,200}[,\s]\s{0,3}["']?([^"')\s]{2,120})/;
const WRITES =
  /\bopen\(\s{0,2}["']([^"'\n]{2,120}?)["']?[\s,]{1,4}["']?wb|\bwritefile\w{0,4}\(\s{0,2}["'`]([^"'`\n]{2,120})|\.write_bytes\(/;
const FETCHES_CODE =
  /\brequests\.get\(|\burlopen\(|\bhttpx\.get\(|\bfetch\(|\baxios(?:\.get)?\(|\.get\(\s{0,2}["'`]https?:/;
const NO_PROGRAM =
  /\.(?:md|json|ya?ml|txt|csv|png|jpe?g|gif|svg|pdf|html?|css|mp[34]|wav|xml|pem|crt|asc|sig|gpg|sha256|wasm|ttf|woff2?|onnx|gguf|safetensors|bin|ics|srt|docx?|xlsx?)$/;

const MAX_PROGRAM_ADDRESSES = 500;
const RUNNER =
  /(?:^|[\s;&|"'`(])(?:(?:ba|z|da)?sh|source|\.|python[\d.]{0,4}|node|perl|ruby|start|start-process|open|installer|msiexec|cmd \/c|call|nohup|sudo|exec|chmod\s{1,3}(?:\+x|[a-z]?\+x|[0-7]{3,4}|u\+x|a\+x)|invoke-item|rundll32|wscript|cscript|powershell|os\.system|subprocess\.\w{1,12}|execsync|spawn)[\s("'[,]{1,4}/;
const MAX_PACKAGE_ADDRESSES = 64;
const CONTEXT_LENGTH = 240;
const MAX_ADDRESS_LENGTH = 500;
const STARTS = /(?:https?|ftp):\/\//g;
const MANAGER = /\b(?:pip3?|pipx|npm|npx|pnpm|pnpx|yarn|bunx?|uvx?|gem|cargo|go|git)\s/;
/** `-y`, `--quiet`, `--depth 1`, `--name=x`: between the verb and the address. */
const OPTIONS = String.raw`(?:\s{1,4}-{1,2}[\w-]{1,30}(?:=[^\s"'\`]{1,60}|\s{1,3}\d{1,6})?){0,8}`;
/** `git+http://…`, `name@http://…`, `"name @ http://…"`. */
const LEAD = String.raw`["']{0,2}(?:[\w.@/[\]-]{1,80}\s?@\s?)?(?:git\+)?$`;
const VERB = String.raw`\b(?:(?:pip3?|pipx|npm|pnpm|yarn|bun|gem|cargo|go|uv(?:\s{1,3}(?:pip|tool))?)(?:\s{1,3}-{1,2}[\w-]{1,30}){0,3}\s{1,3}(?:global\s{1,3}|-g\s{1,3})?(?:install|add|i|get|dlx|exec|x)|npx|pnpx|bunx|uvx|uv\s{1,3}run|uv\s{1,3}tool\s{1,3}run|pipx\s{1,3}run|git\s{1,3}clone)`;
/** The address comes next. */
const ADDRESS_NEXT = new RegExp(String.raw`${VERB}${OPTIONS}\s{1,4}${LEAD}`);
/** Other packages come first. Commands only: in a sentence they would be words. */
const INSTALL = String.raw`\b(?:pip3?|pipx|npm|pnpm|yarn|bun|gem|cargo|go|uv(?:\s{1,3}(?:pip|tool))?)\s{1,3}(?:install|add|i)`;
const AFTER_OTHERS = new RegExp(
  String.raw`${INSTALL}(?:\s{1,4}["']?[\w@.,/[\]=<>~^:-]{1,80}["']?){1,12}\s{1,4}${LEAD}`,
);
/** The address is the value of an option that says where packages come from. */
const BY_OPTION =
  /\b(?:(?:pip3?|pipx|uvx?)\s[^|;&`]{0,200}\s(?:-i|-f|--(?:default-|extra-)?index(?:-url)?|--find-links|--from|--with|--spec)|(?:npm|npx|pnpm|pnpx|yarn|bunx?)\s(?:(?!\s--\s)[^|;&`]){0,200}\s?(?:--registry|--package|-p)|gem\s[^|;&`]{0,200}\s(?:--source|-s)|cargo\s[^|;&`]{0,200}\s(?:--git|--index))(?:=|\s{1,3})["']?(?:[\w.@/[\]-]{1,80}\s?@\s?)?(?:git\+)?$/;
export const downloadAndRun: Rule = {
  hint: /urlopen|fetch\(|requests\.|axios|httpx|http|curl|pip|npm|npx|uvx?|yarn|bun|gem|cargo|git clone|wget|iwr|irm|invoke-|webclient|aria2c|lynx|axel|urlretrieve|downloadfile|certutil|bitsadmin/,
  find: findDownloadsThatRun,
};

function* findDownloadsThatRun(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    const fromNowhere = packagesIn(line, text.kind).find(
      (address) => isSuspicious(address) || (address.plainHttp && isReached(address)),
    );
    if (fromNowhere !== undefined) {
      yield {
        code: "download_and_run",
        severity: "refuse",
        message: `A package is installed from ${describeAddress(fromNowhere)}, bypassing every registry.`,
        line,
        concrete: true,
      };
      continue;
    }
    const saves =
      fetches(line.plain) ||
      LANGUAGE_SAVE.test(line.plain) ||
      /\bcertutil\b.{0,40}-urlcache|\bbitsadmin\b.{0,40}\/transfer/.test(line.plain);
    if (!saves) continue;
    const sources = fetchedFrom(line.plain);
    const name = savedName(line, sources[0]?.path ?? "");
    if (name === undefined) continue;
    const run = linesAround(text, index, 0, LINES_TO_RUN).find((other) =>
      runsFile(other, other === line ? line.plain.indexOf(name) + name.length : 0, name),
    );
    if (run === undefined) continue;
    const { severity, why } = sourceRisk(sources, { text, line, index, subject });
    const own = sources.some(
      (source) => subject.isOwn(source) || source.kind === "forge" || source.kind === "installer",
    );
    yield {
      code: "download_and_run",
      severity: severity === "warn" && own ? "note" : severity,
      message: `A program is fetched ${why}, and run.`,
      line,
      concrete: sources.some((source) => isSuspicious(source) || source.kind === "unknown"),
    };
  }
  yield* findInPrograms(text, subject);
}

/** A bare name like `http://db:8080` is the reader's own host. */
function isReached({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private" && kind !== "example";
}

/** Fetched by a program, written to a file, and run by it. */
function* findInPrograms(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  if (text.kind !== "script") return;
  const fetched = ({ plain }: ScannedLine): boolean => FETCHES_CODE.test(plain);
  const written = ({ plain }: ScannedLine): boolean => WRITES.test(plain);
  let everywhere: readonly Address[] | undefined;
  for (const { source, sink } of yield* dataFlows(text.lines, fetched, written)) {
    const found = WRITES.exec(sink.plain);
    const name = (found?.[1] ?? found?.[2] ?? "").split(/[/\\]/).at(-1) ?? "";
    const index = text.lines.indexOf(sink);
    if (name.length < 2 || NO_PROGRAM.test(name)) continue;
    if (!linesAround(text, index + 1, 0, LINES_TO_RUN).some((other) => runsFile(other, 0, name))) continue;
    const sources = (everywhere ??= addressesOf(text.lines));
    const { severity, why } = sourceRisk(sources, { text, line: source, index: text.lines.indexOf(source), subject });
    yield {
      code: "download_and_run",
      severity,
      message: `A program is fetched ${why}, and run.`,
      line: source,
      concrete: true,
    };
  }
}

function addressesOf(lines: readonly ScannedLine[]): readonly Address[] {
  const found: Address[] = [];
  for (const { plain } of lines) {
    if (plain.includes("://")) found.push(...addressesIn(plain));
    if (found.length >= MAX_PROGRAM_ADDRESSES) break;
  }
  return found;
}

function savedName({ plain }: ScannedLine, path: string): string | undefined {
  // Without a file name the response is printed, not saved.
  const isKept = /\bwget\b|\s-[a-z]{0,6}o\b|--remote-name|urlretrieve|downloadfile|certutil|bitsadmin/.test(plain);
  const name =
    (LANGUAGE_SAVE.exec(plain)?.[1] ?? SAVED_AS.exec(plain)?.[1] ?? (isKept ? path : "")).split(/[/\\]/).at(-1) ?? "";
  return name.length < 2 || name === "null" || NO_PROGRAM.test(name) || !/\w/.test(name) ? undefined : name;
}

/** Whether the file's name is the command, or an argument of a program that runs files. */
function runsFile({ plain }: ScannedLine, from: number, name: string): boolean {
  for (
    let at = plain.indexOf(name, from), tries = 0;
    at !== -1 && tries < 8;
    at = plain.indexOf(name, at + 1), tries += 1
  ) {
    const before = plain.slice(Math.max(0, at - 100), at);
    const command = before.split(/;|&&|\|/).at(-1) ?? "";
    if (/\b(?:curl|wget|unzip|tar|iwr|invoke-webrequest|rm|cat|ls|sha256sum|gpg)\b/.test(command)) continue;
    if (/^[\s"'`&]{0,8}$/.test(command) && at > 0 && /\.(?:bat|cmd|exe|ps1|com)$/.test(name)) return true;
    if (
      RUNNER.test(command) ||
      /^[\s"'`&]{0,8}(?:\.{1,2}\/|\/|~\/|\$\w|\.\\|%\w{1,20}%\\|\w:\\)[^\s]{0,80}$/.test(command)
    )
      return true;
  }
  return false;
}

// Packages installed from an address. An address that is only an argument, like a page to test, does not count.

function packagesIn({ plain, fenced }: ScannedLine, kind: TextKind): Address[] {
  const found: Address[] = [];
  if (!plain.includes("://") || !MANAGER.test(plain)) return found;
  let tries = 0;
  for (const { index } of plain.matchAll(STARTS)) {
    tries += 1;
    if (tries > MAX_PACKAGE_ADDRESSES) break;
    const before = plain.slice(Math.max(0, index - CONTEXT_LENGTH), index);
    const isCommand = fenced || kind === "script" || before.includes("`");
    if (!ADDRESS_NEXT.test(before) && !BY_OPTION.test(before) && !(isCommand && AFTER_OTHERS.test(before))) continue;
    const address = addressesIn(plain.slice(index, index + MAX_ADDRESS_LENGTH))[0];
    if (address !== undefined) found.push(address);
  }
  return found;
}

// Bare IP addresses instead of host names.

export const rawAddress = lineRule(/\/\/(?:[^/\s@]{0,60}@)?[\d[]/, (line, { text }) => {
  if (text.kind === "data" || !line.plain.includes("://")) return undefined;
  if (!/\d\.\d|\/\/\d|\/\/0x|\[[0-9a-f]{0,4}:/.test(line.plain)) return undefined;
  const address = addressesIn(line.plain).find(
    ({ kind, disguised }) => kind === "number" || (disguised && kind !== "local"),
  );
  if (address === undefined) return undefined;
  return {
    code: "raw_address",
    severity: address.disguised ? "refuse" : "warn",
    message: address.disguised
      ? `The address ${address.host} is written so that it does not look like one.`
      : `The IP address ${address.host} says nothing about who answers there.`,
    line,
    near: address.url,
    concrete: true,
  };
});
