/** Changes the servers of a config file in place: comments, order and layout stay, other processes are respected. */
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { findNearest } from "../base/near-matches.ts";
import { appendItem, removeProperty, setProperty } from "../files/edit/json-edit.ts";
import { withLock } from "../files/lock-file.ts";
import { realTarget, writeAtomic } from "../files/write-atomic.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ServerEntrySchema, ServerIdSchema, type ServerEntryInput, type ToolOverride } from "../model/server-spec.ts";
import { ConfigDocument, invalidConfigError, renderDiagnostic } from "./config-document.ts";
import { serverProblems } from "./config-rules.ts";
import { entryNode } from "./config-schema.ts";
import { detectDialect } from "./dialects.ts";
import { serverIdsOf } from "./entry-reader.ts";
import { validateConfig } from "./validate-config.ts";

export interface EditResult {
  /** Null if the file did not exist. */
  readonly before: string | null;
  /** The same as `before` if there was nothing to change. */
  readonly after: string;
}

interface EditOptions {
  /** Work out the result and write nothing. */
  readonly dryRun?: boolean;
}

interface AddOptions extends EditOptions {
  /** Overwrite an entry of the same id instead of refusing. */
  readonly replace?: boolean;
  /** The role that it is a server of; all if absent. */
  readonly role?: string | undefined;
}

const BYTE_ORDER_MARK = "\uFEFF";
const NEW_FILE = '{\n  "mcpServers": {}\n}\n';

/** Adds a server, and the file if it is missing. `conflict` if the id is taken. */
export async function addServer(
  file: string,
  id: string,
  entry: ServerEntryInput,
  options: AddOptions = {},
): Promise<EditResult> {
  return edit(file, options, additionOf(file, id, entry, options));
}

/** The text of the file with the server in it; `before` is null where there is no file. Writes nothing. */
export function textWithServer(file: string, before: string | null, id: string, entry: ServerEntryInput): string {
  return plan(file, before, additionOf(file, id, entry, {})).after;
}

function additionOf(
  file: string,
  id: string,
  entry: ServerEntryInput,
  { replace, role }: Omit<AddOptions, "dryRun">,
): Change {
  checkEntry(id, entry);
  // Whoever names a role has looked at its servers.
  if (role !== undefined) return (text) => setProperty(text, ["roles", role, "mcpServers", id], entry);
  return (text, servers) => {
    const written = servers.get(id);
    if (written !== undefined && replace !== true) {
      throw new ToolcribError("conflict", `${file} already has a server ${JSON.stringify(id)}`, {
        hint: "Choose another id, or remove that server first.",
      });
    }
    return setProperty(text, written?.path ?? ["mcpServers", id], entry);
  };
}

export async function removeServer(file: string, id: string, options: EditOptions = {}): Promise<EditResult> {
  return edit(file, options, removalOf(file, id));
}

/** The text of the file without the server; `not_found` if it is not there. Writes nothing. */
export function textWithoutServer(file: string, before: string | null, id: string): string {
  return plan(file, before, removalOf(file, id)).after;
}

function removalOf(file: string, id: string): Change {
  return (text, servers) => {
    // Whatever it is.
    return removeProperty(text, requireWritten(file, id, servers).path);
  };
}

export async function setEnabled(
  file: string,
  id: string,
  enabled: boolean,
  options: EditOptions = {},
): Promise<EditResult> {
  return edit(file, options, (text, servers) => {
    const { path, entry } = requireServer(file, id, servers);
    // A file shared with another program keeps that program's word, so that both see the change.
    const words = Object.entries({ disabled: !enabled, isActive: enabled, enabled });
    const written = words.filter(([word]) => Object.hasOwn(entry, word));
    if (written.length === 0) return enabled ? text : setProperty(text, [...path, "enabled"], false);
    return written.reduce((draft, [word, value]) => setProperty(draft, [...path, word], value), text);
  });
}

/** Adds an exception to the `ask` list at `path`, so that `entry`, an exact one, no longer needs approval. */
export async function addAskException(file: string, path: readonly string[], entry: string): Promise<EditResult> {
  return edit(file, {}, (text, servers) => appendItem(text, writtenPath(path, servers), `!${entry}`));
}

/**
 * Sets the override of a tool; undefined takes it out.
 * @param owner The path of the server, role or view that it belongs to, which must be there.
 */
export async function setOverride(
  file: string,
  owner: readonly string[],
  tool: string,
  override: ToolOverride | undefined,
  options: EditOptions = {},
): Promise<EditResult> {
  return edit(file, options, (text, servers) => {
    const written = writtenPath(owner, servers);
    const path = [...written, "overrides"];
    let found: unknown = ConfigDocument.parse(file, text).value;
    for (const key of written) found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
    if (!isJsonObject(found)) throw new ToolcribError("not_found", `${file} has no ${owner.join(".")}`);
    if (override !== undefined) return setProperty(text, [...path, tool], override);
    const { overrides } = found;
    const isLast = isJsonObject(overrides) && Object.keys(overrides).every((name) => name === tool);
    return isLast ? removeProperty(text, path) : removeProperty(text, [...path, tool]);
  });
}

export interface PathEdit {
  readonly path: readonly string[];
  /** Undefined removes the key. */
  readonly value: unknown;
}

/** Sets and removes the values at these paths. */
export async function editPaths(file: string, edits: readonly PathEdit[]): Promise<EditResult> {
  return edit(file, {}, (text, servers) => withEdits(text, servers, edits));
}

/** The text of the file with these edits. Writes nothing. */
export function textWithEdits(file: string, before: string | null, edits: readonly PathEdit[]): string {
  return plan(file, before, (text, servers) => withEdits(text, servers, edits)).after;
}

function withEdits(text: string, servers: WrittenServers, edits: readonly PathEdit[]): string {
  return edits.reduce((draft, edited) => {
    const path = writtenPath(edited.path, servers);
    return edited.value === undefined ? removeProperty(draft, path) : setProperty(draft, path, edited.value);
  }, text);
}

/** The file as the change would leave it. Writes nothing. */
export async function planEdit(file: string, change: (text: string) => string): Promise<EditResult> {
  return plan(file, await readText(file), change);
}

/** Writes what was planned. `conflict` if the file is no longer as it was then. */
export async function writePlanned(file: string, { before, after }: EditResult): Promise<void> {
  const target = await realTarget(file);
  await mkdir(dirname(target), { recursive: true });
  await withLock(target, async () => {
    const stillWanted = async (): Promise<boolean> => (await readText(file)) === before;
    if ((await stillWanted()) && (after === before || (await writeAtomic(target, after, { stillWanted })))) return;
    throw changedMeanwhile(file);
  });
}

/** Takes back what was written, also a file that was not there. `conflict` if it was changed since. */
export async function takeBack(file: string, { before, after }: EditResult): Promise<void> {
  if (before !== null) return writePlanned(file, { before: after, after: before });
  const target = await realTarget(file);
  await withLock(target, async () => {
    if ((await readText(file)) !== after) throw changedMeanwhile(file);
    await rm(target);
  });
}

export function changedMeanwhile(file: string): ToolcribError {
  return new ToolcribError("conflict", `${file} was changed since the diff was made. Nothing was written.`, {
    hint: "Look at the new diff, and write that.",
    details: { file },
  });
}

/** The servers of a file by id: another name may be written there, or another key above it. */
type WrittenServers = ReadonlyMap<string, { readonly path: readonly string[]; readonly entry: unknown }>;

type Change = (text: string, servers: WrittenServers) => string;

/** Where a path in the config is in the file. */
function writtenPath(path: readonly string[], servers: WrittenServers): readonly string[] {
  const [first, id = "", ...rest] = path;
  const written = first === "mcpServers" ? servers.get(id) : undefined;
  return written === undefined ? path : [...written.path, ...rest];
}

async function edit(file: string, options: EditOptions, change: Change): Promise<EditResult> {
  if (options.dryRun === true) return plan(file, await readText(file), change);
  const target = await realTarget(file);
  await mkdir(dirname(target), { recursive: true });
  return withLock(target, async () => {
    // The lock keeps Toolcrib's own processes apart; an editor knows nothing of it, so the text is compared as well.
    for (let attempt = 0; attempt < 5; attempt++) {
      const result = plan(file, await readText(file), change);
      if (result.after === result.before) return result;
      const stillWanted = async (): Promise<boolean> => (await readText(file)) === result.before;
      if (await writeAtomic(target, result.after, { stillWanted })) return result;
    }
    throw new ToolcribError("conflict", `${file} keeps changing while it is being edited`, { hint: "Try again." });
  });
}

function plan(file: string, before: string | null, change: Change): EditResult {
  const mark = before?.startsWith(BYTE_ORDER_MARK) === true ? BYTE_ORDER_MARK : "";
  const content = (before ?? "").slice(mark.length);
  const text = content.trim() === "" ? NEW_FILE : content;
  return { before, after: mark + change(text, editableServers(file, text)) };
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new ToolcribError("invalid_config", `${file} cannot be read`, { cause: error });
  }
}

/** The servers of a text that may be edited; refuses what does not parse and what another program's tools must edit. */
function editableServers(file: string, text: string): WrittenServers {
  const document = ConfigDocument.parse(file, text);
  if (document.errors.length > 0) throw invalidConfigError(document.errors);
  const dialect = detectDialect(document.value, file);
  if (!isJsonObject(document.value) || (dialect !== "toolcrib" && dialect !== "claude")) {
    throw new ToolcribError(
      "invalid_config",
      `${file} has the form ${JSON.stringify(dialect)}, which is read but not edited`,
      {
        hint: "Import it from a toolcrib.json, and edit that.",
      },
    );
  }
  const { servers } = document.value;
  const mcpServers = document.value["mcpServers"] ?? {};
  if (!isJsonObject(mcpServers)) throw new ToolcribError("invalid_config", `${file}: mcpServers is not an object`);
  // Of two with one id that of mcpServers counts.
  return new Map([
    ...writtenServers("servers", dialect === "toolcrib" ? servers : undefined),
    ...writtenServers("mcpServers", mcpServers),
  ]);
}

function writtenServers(key: string, map: unknown): [id: string, { path: readonly string[]; entry: unknown }][] {
  if (!isJsonObject(map)) return [];
  return [...serverIdsOf(map)].map(([name, id]) => [id, { path: [key, name], entry: map[name] }]);
}

function requireServer(
  file: string,
  id: string,
  servers: WrittenServers,
): { path: readonly string[]; entry: JsonObject } {
  const { path, entry } = requireWritten(file, id, servers);
  if (isJsonObject(entry)) return { path, entry };
  throw new ToolcribError("conflict", `The entry of ${JSON.stringify(id)} in ${file} is not an object.`, {
    hint: "Correct it in the file, or remove the server.",
  });
}

function requireWritten(
  file: string,
  id: string,
  servers: WrittenServers,
): { readonly path: readonly string[]; readonly entry: unknown } {
  const found = servers.get(id) ?? [...servers.values()].find(({ path }) => path.at(-1) === id);
  if (found !== undefined) return found;
  const meant = findNearest(id, [...servers.keys()]);
  throw new ToolcribError("not_found", `${file} has no server ${JSON.stringify(id)}`, {
    hint:
      meant === undefined
        ? "See `toolcrib status` for the servers and their files."
        : `Did you mean ${JSON.stringify(meant)}?`,
  });
}

/** Nothing is written that a later load would refuse. */
function checkEntry(id: string, entry: ServerEntryInput): void {
  const badId = ServerIdSchema.safeParse(id).error?.issues[0];
  if (badId !== undefined) {
    throw new ToolcribError("invalid_arguments", `${JSON.stringify(id)} is not a valid id; expected ${badId.message}`);
  }
  const document = ConfigDocument.ofValue("entry", entry);
  const { output, problems, warnings } = validateConfig(document, [], entry, ServerEntrySchema, entryNode());
  const wrong = [...problems, ...warnings, ...(output === undefined ? [] : serverProblems(document, [], output))];
  if (wrong.length > 0) throw new ToolcribError("invalid_arguments", wrong.map(renderDiagnostic).join("\n"));
}

const SERVER_CONTAINERS = [["mcpServers"], ["servers"], ["mcp", "servers"], ["mcp"]];

/** The line at which a file names a server; undefined if that cannot be said. */
export async function findServerLine(file: string, id: string): Promise<number | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const document = ConfigDocument.parse(file, text);
  for (const container of SERVER_CONTAINERS) {
    const servers = container.reduce<unknown>(
      (value, key) => (isJsonObject(value) ? value[key] : undefined),
      document.value,
    );
    const [name] = isJsonObject(servers) ? ([...serverIdsOf(servers)].find(([, each]) => each === id) ?? []) : [];
    if (name === undefined) continue;
    const place = { severity: "warning", code: "named", message: "", atKey: true } as const;
    return document.report([...container, name], place).line || undefined;
  }
  return undefined;
}
