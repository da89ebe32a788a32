/** Editing the config: which file a command edits, and how it shows the change. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { EditResult } from "../config/edit-config.ts";
import {
  expandTilde,
  findConfig,
  homeConfigFile,
  isConfigName,
  toolcribHome,
  userHome,
} from "../config/find-config.ts";
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
import { diffLines } from "../config/masked-diff.ts";

interface EditTarget {
  readonly file: string;
  /** Trusts the project config again, if it differs from the trusted one by this edit only. */
  renew(edit: EditResult): Promise<void>;
}

/** The config named on the command line, or the one in the home, which may not exist yet. */
export function userConfigFile({ flags, env, cwd }: Invocation): string {
  const named = flags.text("config") || env["TOOLCRIB_CONFIG"];
  if (named !== undefined && named !== "") return resolve(cwd, expandTilde(named, userHome(env)));
  return homeConfigFile(toolcribHome(env));
}

/** The named config; otherwise the project's if it is trusted, and the one in the home if not. */
export async function findEditTarget(invocation: Invocation): Promise<EditTarget> {
  const { env, cwd, flags, out } = invocation;
  const own: EditTarget = { file: userConfigFile(invocation), renew: async () => {} };
  if ((flags.text("config") || env["TOOLCRIB_CONFIG"] || "") !== "") return own;
  const home = toolcribHome(env);
  const found = findConfig({ env, cwd, home });
  // Files of clients are theirs to edit.
  if ("named" in found || found.project === null || !isConfigName(found.project)) return own;
  const file = found.project;
  const record = (await readTrust(home)).table.get(file);
  const isSafe = record?.shared === true || (await findForeignWriter(file)) === undefined;
  const reading = record !== undefined && isSafe ? await readProject(file, { env, cwd, home }) : undefined;
  if (reading === undefined || !isTrusted(record, reading)) {
    out.warn(`${file} is not trusted, so ${own.file} is used instead. To trust it: ${trustCommand(file)}`);
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

/** Reports the change, or with `--dry-run` shows it as a diff. */
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
  else out.line(changed ? `${did} ${id} in ${file}` : `Nothing to change: ${id} in ${file} is already as requested.`);
}

/** @param mask For formats other than JSON. */
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
  for (const line of diff) out.line(out.paintChange(line));
}

/** Masks a credential in a single line of JSON. */
export function maskCredential(line: string): string {
  return line.replace(/"([^"\\]+)"(:\s*)"((?:[^"\\]|\\.)*)"/g, (whole, key: string, colon: string, value: string) =>
    isCredentialName(key) && isPlainText(value) ? `"${key}"${colon}"${MASK}"` : whole,
  );
}

/**
 * Edits one server. A server that is defined in another file is a conflict, and the error names that file.
 * @param updates The same edit for a server in the store; null removes the server.
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
    // With a trusted project config, both configs are in use.
    if (origin === userConfigFile(invocation)) return { file: origin, result: await edit(origin) };
    if (isStored) {
      const { editStoredServer } = await import("./edit-stored-server.ts");
      return { file: origin, result: await editStoredServer(invocation, id, updates) };
    }
    throw new ToolcribError("conflict", `The server "${id}" comes from ${origin}, not from ${file}.`, {
      hint: "Edit that file, or select it with --config.",
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
  // Loaded here, because commands that only edit a file need no store.
  const { openCommandHome } = await import("./command-home.ts");
  const home = await openCommandHome(invocation, config, false);
  try {
    const stored = await home.store?.servers.get(id);
    return stored === undefined || home.store === undefined ? undefined : { origin: home.store.place, isStored: true };
  } finally {
    await home.close();
  }
}
