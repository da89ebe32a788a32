/** A home like a person's, and the skill command run in it. */
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { runCommandLine } from "../../src/cli/program.ts";
import { put } from "../hub/install/skills.ts";
import { type Finished, type Workspace, workspace } from "./run-cli.ts";

/** Three clients, comments, an own config. */
export function furnished(): Workspace & { readonly toolcribHome: string } {
  const place = Object.assign(workspace(), { toolcribHome: "" });
  Object.assign(place, { toolcribHome: join(place.home, ".toolcrib") });
  put(
    join(place.home, ".cursor/mcp.json"),
    '{\n  // mine\n  "mcpServers": {\n    "own": { "command": "x" } // keep\n  }\n}\n',
  );
  put(join(place.home, ".codex/config.toml"), '# mine\nmodel = "gpt"\n', 0o600);
  put(join(place.home, ".config/Claude/claude_desktop_config.json"), '{"globalShortcut":"x"}');
  put(join(place.toolcribHome, "toolcrib.json"), '{\n  // servers\n  "mcpServers": {}\n}\n', 0o600);
  mkdirSync(join(place.dir, "data"));
  return place;
}

/** As a process of its own. */
export function runReal(place: Workspace, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return place.run(["skill", ...args], { env: environment(place, env) });
}

/** The same code in this process, which is quicker. */
export async function run(place: Workspace, args: readonly string[], extra: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const env = { HOME: place.home, ...environment(place, extra) };
  const code = await runCommandLine(["skill", ...args], { env, cwd: place.dir, stdin: process.stdin, stdout, stderr });
  const [out, err] = [stdout, stderr].map((stream) => String(stream.read() ?? ""));
  return { code, stdout: out ?? "", stderr: err ?? "", json: <T>() => JSON.parse(out ?? "") as T };
}

/** Without a keychain on the PATH, whatever the machine has. */
export function environment(place: Workspace, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const bin = join(place.dir, "bin");
  mkdirSync(bin, { recursive: true });
  return {
    TOOLCRIB_HOME: join(place.home, ".toolcrib"),
    PATH: [bin, dirname(process.execPath)].join(delimiter),
    ...env,
  };
}

export function addProgram(place: Workspace, name: string, script: string): void {
  mkdirSync(join(place.dir, "bin"), { recursive: true });
  writeFileSync(join(place.dir, "bin", name), `#!${process.execPath}\n${script}`, { mode: 0o755 });
}

/** Plays the person at a terminal: gives each answer when its question is shown, and gets all that was shown in the end. */
export async function answered(child: ChildProcessWithoutNullStreams, answers: [string, string][]): Promise<string> {
  let shown = "";
  child.stdout.on("data", (chunk) => {
    shown += String(chunk);
    const [next] = answers;
    if (next === undefined || !shown.includes(next[0])) return;
    answers.shift();
    // The terminal is switched to hidden input right after the question.
    setTimeout(() => child.stdin.write(next[1]), 300);
  });
  await new Promise((done) => child.on("close", done));
  return shown;
}
