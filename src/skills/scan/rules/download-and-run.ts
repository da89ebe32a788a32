/** A file is downloaded, and a few lines on it is run. Ordinary for releases of a project, telling for other places. */
import { type Address, addressesIn, fetchedFrom, isShady } from "../addresses.ts";
import { fetches } from "../commands.ts";
import { packagesIn } from "../package-addresses.ts";
import { around, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import { judgeSource, nameOf } from "../source-severity.ts";
import { flows } from "../flows.ts";
import type { Subject } from "../subject.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const REACH = 12;
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

export const downloadAndRun: Rule = {
  hint: /urlopen|fetch\(|requests\.|axios|httpx|http|curl|pip|npm|npx|uvx?|yarn|bun|gem|cargo|git clone|wget|iwr|irm|invoke-|webclient|aria2c|lynx|axel|urlretrieve|downloadfile|certutil|bitsadmin/,
  find,
};

function* find(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    const fromNowhere = packagesIn(line, text.kind).find(
      (address) => isShady(address) || (address.plainHttp && isReached(address)),
    );
    if (fromNowhere !== undefined) {
      yield {
        code: "download_and_run",
        severity: "refuse",
        message: `A package is installed from ${nameOf(fromNowhere)}, past every registry.`,
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
    const run = around(text, index, 0, REACH).find((other) =>
      runsFile(other, other === line ? line.plain.indexOf(name) + name.length : 0, name),
    );
    if (run === undefined) continue;
    const { severity, why } = judgeSource(sources, { text, line, index, subject });
    const own = sources.some(
      (source) => subject.isOwn(source) || source.kind === "forge" || source.kind === "installer",
    );
    yield {
      code: "download_and_run",
      severity: severity === "warn" && own ? "note" : severity,
      message: `A program is fetched ${why}, and run.`,
      line,
      concrete: sources.some((source) => isShady(source) || source.kind === "unknown"),
    };
  }
  yield* inProgram(text, subject);
}

/** A name without an owner, like `http://db:8080`, is a place of the reader's own. */
function isReached({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private" && kind !== "example";
}

/** Fetched by a program, written to a file, and run by it. */
function* inProgram(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  if (text.kind !== "script") return;
  const fetched = ({ plain }: ScannedLine): boolean => FETCHES_CODE.test(plain);
  const written = ({ plain }: ScannedLine): boolean => WRITES.test(plain);
  let everywhere: readonly Address[] | undefined;
  for (const { source, sink } of yield* flows(text.lines, fetched, written)) {
    const found = WRITES.exec(sink.plain);
    const name = (found?.[1] ?? found?.[2] ?? "").split(/[/\\]/).at(-1) ?? "";
    const index = text.lines.indexOf(sink);
    if (name.length < 2 || NO_PROGRAM.test(name)) continue;
    if (!around(text, index + 1, 0, REACH).some((other) => runsFile(other, 0, name))) continue;
    const sources = (everywhere ??= addressesOf(text.lines));
    const { severity, why } = judgeSource(sources, { text, line: source, index: text.lines.indexOf(source), subject });
    yield {
      code: "download_and_run",
      severity,
      message: `A program is fetched ${why}, and run.`,
      line: source,
      concrete: true,
    };
  }
}

const MOST_ADDRESSES = 500;

function addressesOf(lines: readonly ScannedLine[]): readonly Address[] {
  const found: Address[] = [];
  for (const { plain } of lines) {
    if (plain.includes("://")) found.push(...addressesIn(plain));
    if (found.length >= MOST_ADDRESSES) break;
  }
  return found;
}

function savedName({ plain }: ScannedLine, path: string): string | undefined {
  // Without a name for it the answer is shown, not saved.
  const isKept = /\bwget\b|\s-[a-z]{0,6}o\b|--remote-name|urlretrieve|downloadfile|certutil|bitsadmin/.test(plain);
  const name =
    (LANGUAGE_SAVE.exec(plain)?.[1] ?? SAVED_AS.exec(plain)?.[1] ?? (isKept ? path : "")).split(/[/\\]/).at(-1) ?? "";
  return name.length < 2 || name === "null" || NO_PROGRAM.test(name) || !/\w/.test(name) ? undefined : name;
}

const RUNNER =
  /(?:^|[\s;&|"'`(])(?:(?:ba|z|da)?sh|source|\.|python[\d.]{0,4}|node|perl|ruby|start|start-process|open|installer|msiexec|cmd \/c|call|nohup|sudo|exec|chmod\s{1,3}(?:\+x|[a-z]?\+x|[0-7]{3,4}|u\+x|a\+x)|invoke-item|rundll32|wscript|cscript|powershell|os\.system|subprocess\.\w{1,12}|execsync|spawn)[\s("'[,]{1,4}/;

/** The file's name stands behind a program that runs files, or at the place of the command. */
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
