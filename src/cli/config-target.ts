/** What the commands that edit the config share: which file, and how a change is shown. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { EditResult } from "../config/edit-config.ts";
import { expandTilde, findConfig, homeConfigFile, toolcribHome, userHome } from "../config/find-config.ts";
import { readProject } from "../config/load-config.ts";
import {
  isTrusted,
  readTrust,
  trustRecordOf,
  saveTrust,
  findForeignWriter,
  trustCommand,
} from "../config/project-trust.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { isPlainText, isCredentialName } from "../secrets/credential-names.ts";
import { MASK } from "../secrets/mask.ts";
import type { Invocation } from "./command.ts";
import { loadCommandConfigQuietly, recoverInterruptedInstall } from "./command-config.ts";
import { diffLines } from "./masked-diff.ts";

/** The file that a command edits. */
interface EditTarget {
  readonly file: string;
  /** Trusts the edited project config again, if it is what was trusted with this edit and nothing else. */
  renew(edit: EditResult): Promise<void>;
}

/** The config that the command line names; the home's, still to be made where there is none. */
export function userConfigFile({ flags, env, cwd }: Invocation): string {
  const named = flags.text("config") || env["TOOLCRIB_CONFIG"];
  if (named !== undefined && named !== "") return resolve(cwd, expandTilde(named, userHome(env)));
  return homeConfigFile(toolcribHome(env));
}

/** The config that is named; otherwise the project's if it is trusted, and the home's, still to be made, if not. */
export async function findEditTarget(invocation: Invocation): Promise<EditTarget> {
  const { env, cwd, flags, out } = invocation;
  const own: EditTarget = { file: userConfigFile(invocation), renew: async () => {} };
  if ((flags.text("config") || env["TOOLCRIB_CONFIG"] || "") !== "") return own;
  const home = toolcribHome(env);
  const found = findConfig({ env, cwd, home });
  if ("named" in found || found.project === null) return own;
  const file = found.project;
  const record = (await readTrust(home)).table.get(file);
  const isSafe = record?.shared === true || (await findForeignWriter(file)) === undefined;
  const reading = record !== undefined && isSafe ? await readProject(file, { env, cwd, home }) : undefined;
  if (reading === undefined || !isTrusted(record, reading)) {
    out.warn(`${file} is not trusted, so this is about ${own.file}. To change that: ${trustCommand(file)}`);
    return own;
  }
  return {
    file,
    async renew({ before, after }) {
      if (before === after || before !== reading.texts.get(file)) return;
      const edited = await readProject(file, { env, cwd, home }, new Map([...reading.texts, [file, after]]));
      await saveTrust(home, file, trustRecordOf(edited, record?.shared === true));
    },
  };
}

/** Says what was changed where, or with `--dry-run` what would be. */
export function showEdit(
  invocation: Invocation,
  id: string,
  file: string,
  did: string,
  { before, after }: EditResult,
): void {
  const { out, flags } = invocation;
  const changed = before !== after;
  if (flags.has("dryRun")) {
    showDiff(invocation, file, before ?? "", after, { id });
    return;
  }
  if (out.json) out.value({ id, file, changed });
  else out.line(changed ? `${did} ${id} in ${file}` : `Nothing to change: ${id} in ${file} is so already.`);
}

/** `mask` for what is no JSON. */
export function showDiff(
  { out }: Invocation,
  file: string,
  before: string,
  after: string,
  facts: Readonly<Record<string, unknown>>,
  mask?: (text: string) => string,
): void {
  const diff = diffLines(before, after, mask);
  if (out.json) {
    out.value({ ...facts, file, changed: diff.length > 0, dryRun: true, diff });
    return;
  }
  if (diff.length === 0) {
    out.line(`Nothing to change in ${file}.`);
    return;
  }
  out.line(out.paint("bold", file));
  for (const line of diff)
    out.line(line.startsWith("+") ? out.paint("green", line) : line.startsWith("-") ? out.paint("red", line) : line);
}

/** The same for one line, of which nobody knows where it stands. */
export function maskCredential(line: string): string {
  return line.replace(/"([^"\\]+)"(:\s*)"((?:[^"\\]|\\.)*)"/g, (whole, key: string, colon: string, value: string) =>
    isCredentialName(key) && isPlainText(value) ? `"${key}"${colon}"${MASK}"` : whole,
  );
}

/**
 * Runs an edit of one server of the file; a server that stands in another file is a conflict that names it.
 * @param updates The same for a server that the store holds, whose entry is no file; null takes it out.
 */
export async function editServerEntry(
  invocation: Invocation,
  id: string,
  edit: (file: string) => Promise<EditResult>,
  updates: JsonObject | null,
): Promise<{ file: string; result: EditResult }> {
  await recoverInterruptedInstall(invocation);
  const { file, renew } = await findEditTarget(invocation);
  try {
    if (!existsSync(file)) throw new ToolcribError("not_found", `There is no server "${id}": ${file} does not exist.`);
    const result = await edit(file);
    if (!invocation.flags.has("dryRun")) await renew(result);
    return { file, result };
  } catch (error) {
    if (!(error instanceof ToolcribError) || error.code !== "not_found") throw error;
    const elsewhere = await originElsewhere(invocation, id, file);
    if (elsewhere === undefined) throw error;
    const { origin, isStored } = elsewhere;
    // In a folder with a trusted project config both are in use.
    if (origin === userConfigFile(invocation)) return { file: origin, result: await edit(origin) };
    if (isStored) {
      const { editStoredServer } = await import("./edit-stored-server.ts");
      return { file: origin, result: await editStoredServer(invocation, id, updates) };
    }
    throw new ToolcribError("conflict", `The server "${id}" comes from ${origin}, not from ${file}.`, {
      hint: `Change it there, or name that file with --config.`,
      details: { file: origin },
    });
  }
}

async function originElsewhere(
  invocation: Invocation,
  id: string,
  file: string,
): Promise<{ origin: string; isStored: boolean } | undefined> {
  if (!existsSync(file) && invocation.flags.text("config") !== undefined) return undefined;
  const config = await loadCommandConfigQuietly(invocation);
  const origin = config.servers.find((spec) => spec.id === id)?.origin.file;
  if (origin !== undefined) return origin === file ? undefined : { origin, isStored: false };
  // Loaded here: commands that only edit a file need no store.
  const { openCommandHome } = await import("./command-home.ts");
  const home = await openCommandHome(invocation, config, false);
  try {
    const stored = await home.store?.servers.get(id);
    return stored === undefined || home.store === undefined ? undefined : { origin: home.store.place, isStored: true };
  } finally {
    await home.close();
  }
}
