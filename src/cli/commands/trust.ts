/** `toolcrib trust`: manages which project configs may be used. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import {
  clientFilesIn,
  clientProject,
  configIn,
  expandTilde,
  isConfigName,
  projectConfig,
  toolcribHome,
  trustFile,
  userHome,
} from "../../config/find-config.ts";
import { readProject } from "../../config/load-config.ts";
import { describeProject } from "../../config/project-config.ts";
import {
  isTrusted,
  readTrust,
  trustRecordOf,
  saveTrust,
  findForeignWriter,
  trustCommand,
  type TrustTable,
} from "../../config/project-trust.ts";
import { ToolcribError } from "../../model/errors.ts";
import { terminalLine } from "../../base/visible-text.ts";
import { type Invocation, unknownAction } from "../command.ts";
import type { Column } from "../table.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [first, second] = invocation.args;
  switch (first) {
    case "list":
      return list(invocation);
    case "remove":
      return remove(invocation, second);
    case "add":
      return add(invocation, second);
    default:
      if (second === undefined) return add(invocation, first);
      throw unknownAction("trust", terminalLine(first ?? ""), "Use list, add or remove, or toolcrib trust <file>.");
  }
}

async function add(invocation: Invocation, named: string | undefined): Promise<number> {
  const { env, cwd, flags, out } = invocation;
  const home = toolcribHome(env);
  const file = projectFile(invocation, named);
  const shared = flags.has("shared");
  const reading = await readProject(file, { env, cwd, home });
  for (const path of shared ? [] : [file, ...reading.texts.keys()]) {
    const strangers = await findForeignWriter(path);
    if (strangers === undefined) continue;
    throw new ToolcribError("denied", `${terminalLine(file)} was not trusted: ${strangers}.`, {
      hint: `Change the permissions, or accept that others can change what it runs: ${trustCommand(file, true)}`,
    });
  }
  if (reading.failure !== undefined) throw reading.failure;
  await saveTrust(home, file, trustRecordOf(reading, shared));
  const uses = describeProject(reading);
  if (out.json) {
    out.value({ file, digest: reading.digest, shared, uses });
    return 0;
  }
  out.line(`Trusted ${terminalLine(file)}${uses.length === 0 ? "." : ", which starts or uses:"}`);
  for (const line of uses) out.line(`  ${line}`);
  return 0;
}

async function remove(invocation: Invocation, named: string | undefined): Promise<number> {
  const { env, out } = invocation;
  const home = toolcribHome(env);
  const found = projectFile(invocation, named, { mayBeGone: true });
  const { table, problem } = await readTrust(home);
  assertReadable(home, problem);
  // The folder, if the files of clients in it are gone.
  const file = !table.has(found) && table.has(dirname(found)) ? dirname(found) : found;
  if (!table.has(file)) {
    throw new ToolcribError("not_found", `${terminalLine(file)} is not trusted.`, {
      hint: "Run toolcrib trust list to see the trusted configs.",
    });
  }
  await saveTrust(home, file, undefined);
  if (out.json) out.value({ file, removed: true });
  else out.line(`No longer trusted: ${terminalLine(file)}`);
  return 0;
}

interface Row {
  readonly file: string;
  /** `changed`: not used until it is trusted again. `refused`: other users can change it. */
  readonly state: "trusted" | "changed" | "refused" | "missing";
  readonly trustedAt: string;
  readonly shared: boolean;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "STATE", cell: ({ state }) => state },
  { title: "TRUSTED", cell: ({ trustedAt }) => trustedAt },
  { title: "FILE", cell: ({ file, shared }) => `${terminalLine(file)}${shared ? " (shared)" : ""}` },
];

async function list(invocation: Invocation): Promise<number> {
  const { out, env } = invocation;
  const home = toolcribHome(env);
  const { table, problem } = await readTrust(home);
  assertReadable(home, problem);
  const rows = await Promise.all([...table].map(([file, record]) => rowOf(invocation, file, record)));
  out.list(COLUMNS, rows, "No project config is trusted. Trust one with toolcrib trust <file>.");
  return 0;
}

type Trusted = NonNullable<ReturnType<TrustTable["get"]>>;

async function rowOf({ env, cwd }: Invocation, file: string, record: Trusted): Promise<Row> {
  const { trustedAt, shared = false } = record;
  const row = (state: Row["state"]): Row => ({ file, state, trustedAt, shared });
  if (!existsSync(file)) return row("missing");
  if (!shared && (await findForeignWriter(file)) !== undefined) return row("refused");
  const reading = await readProject(file, { env, cwd, home: toolcribHome(env) });
  return row(isTrusted(record, reading) ? "trusted" : "changed");
}

function assertReadable(home: string, problem: string | undefined): void {
  if (problem === undefined) return;
  throw new ToolcribError("invalid_config", `${trustFile(home)} ${problem}, so no project config is trusted.`, {
    hint: "Repair it, or delete it and trust the project configs again.",
  });
}

/** The path that is recorded as trusted: the real folder and the file name, or the folder if it has files of clients only. */
function projectFile(
  { cwd, env }: Invocation,
  named: string | undefined,
  { mayBeGone = false }: { readonly mayBeGone?: boolean } = {},
): string {
  const home = toolcribHome(env);
  if (named === undefined) {
    const found = projectConfig(cwd, home) ?? clientProject(cwd, home, env);
    if (found !== null) return found;
    throw new ToolcribError("not_found", `There is no project config in ${cwd} or its parent folders.`, {
      hint: "Name the file: toolcrib trust <file>",
    });
  }
  const given = resolve(cwd, expandTilde(named, userHome(env)));
  const isFolder = statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
  const folder = isFolder ? given : folderOfClientFile(given);
  if (folder !== undefined && configIn(folder) === undefined && clientFilesIn(folder).length > 0) {
    const real = realpathSync(folder);
    if (clientProject(real, home, env) === real) return real;
    throw new ToolcribError("invalid_arguments", `${terminalLine(given)} is your own and needs no trust.`, {
      hint: "Name the client in `import` of your config to use its servers.",
    });
  }
  const file = folder === undefined ? given : (configIn(folder) ?? join(folder, "toolcrib.json"));
  if (!isConfigName(file)) {
    const message = `${terminalLine(file)} is not found automatically and needs no trust.`;
    const hint =
      "Only toolcrib.json, toolcrib.jsonc and some files of clients are found. Use --config for any other file.";
    throw new ToolcribError("invalid_arguments", message, { hint });
  }
  if (!existsSync(file)) {
    if (mayBeGone) return file;
    throw new ToolcribError("not_found", `The file ${terminalLine(file)} does not exist.`);
  }
  const real = join(realpathSync(dirname(file)), basename(file));
  if (projectConfig(dirname(real), home) === real) return real;
  throw new ToolcribError("invalid_arguments", `${terminalLine(file)} is your own config and needs no trust.`);
}

/** The project that a client's file belongs to, such as that of `.cursor/mcp.json`. */
function folderOfClientFile(file: string): string | undefined {
  const folders = ["..", "../..", "../../.."].map((up) => resolve(file, up));
  return folders.find((folder) => clientFilesIn(folder).includes(file));
}
