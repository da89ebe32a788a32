/** Runs the examples of a document one after the other in one shell, as a reader would who pastes them into a terminal. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { isBuilt } from "../support/main-program.ts";
import type { Example } from "./markdown-examples.ts";

const root = join(import.meta.dirname, "..", "..");
/** Where the hub listens in the documents. */
const SHOWN_PORT = /\b4700\b/g;
const LONGEST_MS = 110_000;
const MARK = "\u001E";

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it came to its end. */
  readonly ended: boolean;
}

export interface RanExamples {
  /** By the line of the example. */
  readonly ran: ReadonlyMap<number, Ran>;
  /** What a document shows, with this run's port. */
  readonly shown: (text: string) => string;
}

export async function runExamples(examples: readonly Example[]): Promise<RanExamples> {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-docs-"));
  const port = await choosePort();
  const shown = (given: string): string => given.replace(SHOWN_PORT, String(port));
  try {
    const work = layOut(folder);
    const script = join(folder, "examples.sh");
    writeFileSync(script, scriptOf(examples, { work, port, shown }));
    const path = [join(folder, "bin"), dirname(process.execPath), process.env["PATH"]].join(delimiter);
    const child = spawn("bash", [script], {
      cwd: work,
      timeout: LONGEST_MS,
      env: { PATH: path, HOME: join(folder, "home"), TMPDIR: folder, LANG: "C.UTF-8", NO_COLOR: "1" },
    });
    child.stdin.end();
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    if (!(await isFree(port))) throw new Error(`The hub of the examples still listens at port ${port}.`);
    const hubErrors = join(folder, "hub.err");
    const hub = existsSync(hubErrors) ? readFileSync(hubErrors, "utf8") : "";
    return { ran: collect(stdout, hub === "" ? stderr : `${stderr}\nThe hub said: ${hub}`), shown };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A home, a folder to work in, and the programs that the examples use. */
function layOut(folder: string): string {
  const [bin, work] = [join(folder, "bin"), join(folder, "work")];
  for (const each of [bin, work, join(folder, "home"), join(work, "node_modules")]) mkdirSync(each);
  const asPackage = isBuilt();
  const main = join(root, ...(asPackage ? ["bin", "toolcrib.js"] : ["src", "cli", "main.ts"]));
  program(join(bin, "toolcrib"), `exec node '${main}' "$@"`);
  // The packages are those of this repository: a test asks no registry.
  program(join(bin, "npx"), `shift; package=$1; shift; exec node '${root}/node_modules'/$package/dist/index.js "$@"`);
  const installed = join(work, "node_modules", "toolcrib");
  if (asPackage) symlinkSync(root, installed, "dir");
  else standIn(installed);
  return work;
}

function program(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\n${line}\n`);
  chmodSync(path, 0o755);
}

/** For a package that is not. */
function standIn(installed: string): void {
  mkdirSync(installed);
  const source = pathToFileURL(join(root, "src", "api-client", "index.ts"));
  writeFileSync(join(installed, "client.js"), `export * from "${source.href}";\n`);
  const described = { name: "toolcrib", type: "module", exports: { "./client": "./client.js" } };
  writeFileSync(join(installed, "package.json"), JSON.stringify(described));
}

interface Scene {
  readonly work: string;
  readonly port: number;
  readonly shown: (text: string) => string;
}

function scriptOf(examples: readonly Example[], scene: Scene): string {
  const steps = examples.flatMap((example) => {
    const step = stepOf(example, scene);
    const mark = `printf '${MARK}%s\\n' ${example.line}`;
    return step === undefined ? [] : [`${mark}; ${mark} >&2`, step];
  });
  return [
    "set -e -o pipefail",
    "EXAMPLES_HUB=",
    // What the examples leave behind as jobs ends with the shell.
    `trap '[ -z "$EXAMPLES_HUB" ] || { kill $EXAMPLES_HUB; wait $EXAMPLES_HUB || true; }' EXIT`,
    ...steps,
    `printf '${MARK}end\\n'`,
  ].join("\n");
}

/** What the shell does for an example; undefined where nothing is to be done. */
function stepOf({ line, language, mark, text: written }: Example, { work, port, shown }: Scene): string | undefined {
  const content = shown(written);
  if (mark.kind === "file") {
    const path = join(work, mark.name);
    const put = join(work, "..", `file-${line}`);
    writeFileSync(put, `${content}\n`);
    return `mkdir -p '${dirname(path)}'; cp '${put}' '${path}'`;
  }
  if (mark.kind === "hub") {
    const ready = `http://127.0.0.1:${port}/readyz`;
    // Without `exec` the signal at the end would reach a shell and not the hub.
    // It is ready a moment before its file with the token is there.
    return `( exec ${content} ) > ../hub.out 2> ../hub.err & EXAMPLES_HUB=$!
until curl -sf ${ready} > /dev/null && ls ~/.toolcrib/hubs/*.json > /dev/null 2>&1; do kill -0 $EXAMPLES_HUB; sleep 0.1; done`;
  }
  if (mark.kind !== "run") return undefined;
  const runnable = language === "sh" ? content : programOf(work, line, language, content);
  if (mark.seconds === undefined) return runnable;
  const file = join(work, "..", `step-${line}.sh`);
  writeFileSync(file, `${runnable}\n`);
  return `timeout ${mark.seconds} bash '${file}' || [ $? = 124 ]`;
}

function programOf(work: string, line: number, language: string, content: string): string {
  const name = `example-${line}.${language === "ts" ? "mts" : "mjs"}`;
  writeFileSync(join(work, name), `${content}\n`);
  return `node ${name}`;
}

function collect(stdout: string, stderr: string): Map<number, Ran> {
  const errors = new Map(pieces(stderr));
  const printed = pieces(stdout);
  return new Map(
    printed
      .filter(([name]) => name !== "end")
      .map(([name, own], index) => [
        Number(name),
        { stdout: own, stderr: errors.get(name) ?? "", ended: index < printed.length - 1 },
      ]),
  );
}

function pieces(output: string): (readonly [string, string])[] {
  return output
    .split(MARK)
    .slice(1)
    .map((piece) => {
      const end = piece.indexOf("\n");
      return [piece.slice(0, end), piece.slice(end + 1)];
    });
}

/** Below what systems give out by themselves, so that nothing takes it before the hub does. */
async function choosePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
