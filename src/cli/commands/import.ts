/** `toolcrib import`: adds the servers of a client or a config file to the config. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { AgentClient, ClientFile } from "../../clients/agent-client.ts";
import { clientById } from "../../clients/clients.ts";
import { isProjectFile, readServersOfClient } from "../../config/client-servers.ts";
import { invalidConfigError, renderDiagnostic } from "../../config/config-document.ts";
import { parseConfigText, readDialect } from "../../config/dialects.ts";
import { addServer, editPaths, type EditResult } from "../../config/edit-config.ts";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { loadConfig } from "../../config/load-config.ts";
import { readSnippetFile } from "../../config/pasted-servers.ts";
import type { DialectRead } from "../../config/entry-reader.ts";
import type { Config } from "../../model/config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { Diagnostic } from "../../model/loaded-config.ts";
import {
  type ServerEntry,
  type ServerEntryInput,
  ServerEntrySchema,
  type ServerSpec,
} from "../../model/server-spec.ts";
import { isPlainText, isCredentialName } from "../../secrets/credential-names.ts";
import { unknownClient, clientEnvironment, clientScope } from "../client-config.ts";
import { recoverInterruptedInstall } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import { findEditTarget, showDiff } from "../config-target.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, flags, out } = invocation;
  await recoverInterruptedInstall(invocation);
  const { file: target, renew } = await findEditTarget(invocation);
  const source = await readSource(invocation, args[0] ?? "");
  if (source.files.includes(target))
    throw new ToolcribError("invalid_arguments", `${target} is the config to import into.`);

  const onConflict = flags.has("force") ? "replace" : flags.has("rename") ? "rename" : "refuse";
  const { servers: present, roles: known } = await readTarget(invocation, target);
  const roles = newRoles(source.roles, known);
  const steps = [
    ...planImport(source.servers, present.filter(isShared), onConflict),
    ...Object.entries(source.roleServers).flatMap(([role, servers]) =>
      planRoleImport(role, servers, present, flags.has("force")),
    ),
  ];
  assertNoConflict(steps, target);

  const credentials = steps
    .filter(({ action }) => action !== "same")
    .flatMap(({ id, entry }) => findPlainCredentials(id, entry));
  for (const credential of credentials) out.warn(credentialAdvice(credential));
  const facts = factsOf(steps, source, credentials);
  if (flags.has("dryRun")) {
    await showDryRun(invocation, { steps, roles }, target, facts);
    return 0;
  }
  for (const edit of await writeSteps({ steps, roles }, target)) await renew(edit);
  if (out.json) out.value({ ...facts, file: target });
  else show(out, { steps, roles }, target);
  return 0;
}

interface ImportTarget {
  readonly servers: readonly ServerSpec[];
  readonly roles: Config["roles"];
}

async function readTarget({ cwd, env }: Invocation, target: string): Promise<ImportTarget> {
  if (!existsSync(target)) return { servers: [], roles: {} };
  const { servers, config } = await loadConfig({ file: target, cwd, env });
  return { servers, roles: config.roles };
}

/** A role of the config stays as it is, as where the file is read live. */
function newRoles(incoming: ImportSource["roles"], known: Config["roles"]): ImportSource["roles"] {
  return Object.fromEntries(Object.entries(incoming).filter(([role]) => !Object.hasOwn(known, role)));
}

function assertNoConflict(steps: readonly ImportStep[], target: string): void {
  const taken = steps.filter((step) => step.action === "conflict").map(shownId);
  if (taken.length === 0) return;
  throw new ToolcribError("conflict", `${target} already has different servers with these ids: ${taken.join(", ")}`, {
    hint: "Use --force to replace them, or --rename to import under new ids. Nothing was imported.",
    details: { ids: taken },
  });
}

/**
 * What the config lacks of these clients' servers. An id that is taken by another server gets a number. Clients without
 * servers, or with a file that cannot be read, are passed over.
 */
export async function planClientImports(
  invocation: Invocation,
  clients: readonly AgentClient[],
  target: string,
): Promise<ImportPlan> {
  const { servers, roles: known } = await readTarget(invocation, target);
  let present = servers;
  const steps: ImportStep[] = [];
  let roles: ImportSource["roles"] = {};
  for (const client of clients) {
    const source = await readClient(invocation, client).catch((error: unknown) => {
      const { code, message } = asToolcribError(error);
      if (code !== "not_found") invocation.out.warn(message);
    });
    if (source === undefined) continue;
    const incoming = new Map(source.servers.map((spec) => [spec.id, spec]));
    const fresh = [
      ...planImport(source.servers, present.filter(isShared), "rename"),
      ...Object.entries(source.roleServers).flatMap(([role, servers]) => planRoleImport(role, servers, present, false)),
    ].filter(({ action }) => action === "add" || action === "rename");
    steps.push(...fresh);
    roles = { ...newRoles(source.roles, known), ...roles };
    const added = fresh.flatMap(({ from, id, role }) => {
      const spec = role === undefined ? incoming.get(from) : undefined;
      return spec === undefined ? [] : [{ ...spec, id }];
    });
    present = [...present, ...added];
  }
  for (const { id, entry } of steps) {
    for (const credential of findPlainCredentials(id, entry)) invocation.out.warn(credentialAdvice(credential));
  }
  return { steps, roles };
}

/** All of it as one edit; empty if nothing changed. */
export async function writeSteps({ steps, roles }: ImportPlan, target: string): Promise<EditResult[]> {
  const edits: EditResult[] = [];
  const written = Object.entries(roles).map(([role, value]) => ({ path: ["roles", role], value }));
  if (written.length > 0) edits.push(await editPaths(target, written));
  for (const { id, role, entry, action } of steps) {
    if (action !== "same") edits.push(await addServer(target, id, entry, { replace: action === "replace", role }));
  }
  const [first, last] = [edits[0], edits.at(-1)];
  const isOne = edits.every(({ before }, index) => index === 0 || before === edits[index - 1]?.after);
  return first === undefined || last === undefined || !isOne ? [] : [{ before: first.before, after: last.after }];
}

/** Writes to a copy, because one diff shows all steps together. */
async function showDryRun(invocation: Invocation, plan: ImportPlan, target: string, facts: object): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-dry-run-"));
  try {
    const copy = join(folder, basename(target));
    if (existsSync(target)) copyFileSync(target, copy);
    const before = existsSync(copy) ? readFileSync(copy, "utf8") : "";
    await writeSteps(plan, copy);
    const after = existsSync(copy) ? readFileSync(copy, "utf8") : "";
    showDiff(invocation, target, before, after, { ...facts });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Facts {
  readonly source: string;
  readonly added: readonly string[];
  readonly replaced: readonly string[];
  readonly renamed: readonly { from: string; to: string }[];
  /** Already present, by their ids in the source. */
  readonly skipped: readonly string[];
  /** Entries of the source that start Toolcrib itself. */
  readonly leftOut: readonly string[];
  /** Credentials in plain text in imported entries. */
  readonly credentials: readonly PlainCredential[];
}

function factsOf(
  steps: readonly ImportStep[],
  { name, own }: ImportSource,
  credentials: readonly PlainCredential[],
): Facts {
  const ids = (action: ImportStep["action"]): string[] => steps.filter((step) => step.action === action).map(shownId);
  return {
    source: name,
    added: ids("add"),
    replaced: ids("replace"),
    renamed: steps.filter((step) => step.action === "rename").map(({ from, id }) => ({ from, to: id })),
    skipped: steps.filter((step) => step.action === "same").map((step) => step.from),
    leftOut: own,
    credentials,
  };
}

const WORDS = {
  add: "added",
  replace: "replaced",
  rename: "added",
  same: "already present",
  conflict: "id is taken",
} as const;

function show(out: Invocation["out"], { steps, roles }: ImportPlan, target: string): void {
  out.line(target);
  for (const role of Object.keys(roles)) out.line(`  role ${role}  added`);
  for (const step of steps) {
    const { from, id, action } = step;
    out.line(`  ${shownId(step)}  ${WORDS[action]}${from === id ? "" : ` (${from} in the source)`}`);
  }
}

/** A role's own server has the id that the hub gives it. */
export function shownId({ id, role }: ImportStep): string {
  return role === undefined ? id : `${id}@${role}`;
}

export interface ImportPlan {
  readonly steps: readonly ImportStep[];
  /** Those that the config does not have. */
  readonly roles: ImportSource["roles"];
}

export interface ImportStep {
  /** The id in the file that is read. */
  readonly from: string;
  /** The role whose own server it is. */
  readonly role?: string;
  /** The id in the config. It differs for `rename`, and for a server that is present under another id. */
  readonly id: string;
  readonly entry: ServerEntryInput;
  /** `conflict`: a different server has the id. `same`: the server is already present. */
  readonly action: "add" | "replace" | "rename" | "same" | "conflict";
}

function planImport(
  incoming: readonly ServerSpec[],
  present: readonly ServerSpec[],
  onConflict: "replace" | "rename" | "refuse",
): ImportStep[] {
  const here = new Map(present.map((spec) => [spec.id, spec]));
  const taken = new Set([...here.keys(), ...incoming.map((spec) => spec.id)]);
  /** The target of each id, including servers of earlier steps. */
  const known = new Map(present.map((spec) => [spec.id, targetOf(entryToWrite(spec))]));
  return incoming.map((spec): ImportStep => {
    const entry = entryToWrite(spec);
    const existing = here.get(spec.id);
    const step = { from: spec.id, id: spec.id, entry };
    if (existing !== undefined && isDeepStrictEqual(entryToWrite(existing), entry)) return { ...step, action: "same" };
    const isWanted = existing !== undefined && onConflict === "replace";
    const twin = isWanted ? undefined : idOfSameServer(spec.id, targetOf(entry), known);
    if (twin !== undefined) return { ...step, id: twin, action: "same" };
    known.set(spec.id, targetOf(entry));
    if (existing === undefined) return { ...step, action: "add" };
    switch (onConflict) {
      case "replace":
        return { ...step, action: "replace" };
      case "refuse":
        return { ...step, action: "conflict" };
      case "rename":
        return { ...step, id: freeId(spec.id, taken), action: "rename" };
    }
  });
}

function isShared({ replaces }: ServerSpec): boolean {
  return replaces === undefined;
}

/** Servers of one agent become those of the role of that name. Those that the role has already are not renamed. */
function planRoleImport(
  role: string,
  incoming: readonly ServerSpec[],
  present: readonly ServerSpec[],
  isForced: boolean,
): ImportStep[] {
  return incoming.map((spec) => {
    const entry = entryToWrite(spec);
    const existing = present.find(({ id }) => id === `${spec.id}@${role}`);
    const step = { from: spec.id, role, id: spec.id, entry };
    if (existing === undefined) return { ...step, action: "add" };
    const { replaces: _replaces, name: _name, roles: _roles, ...theirs } = existing;
    const { name: _own, ...ours } = spec;
    if (isDeepStrictEqual(entryToWrite(theirs), entryToWrite(ours))) return { ...step, action: "same" };
    return { ...step, action: isForced ? "replace" : "conflict" };
  });
}

/** Two entries with an equal target are the same server. */
function targetOf({ command, args = [], cwd, env = {}, url, headers = {}, tools, roles }: ServerEntryInput): object {
  return { ...(url === undefined ? { command, args, cwd, env } : { url, headers }), tools, roles };
}

/** The other id under which the same server is known. */
function idOfSameServer(id: string, target: object, known: ReadonlyMap<string, object>): string | undefined {
  return [...known].find(([other, theirs]) => other !== id && isDeepStrictEqual(theirs, target))?.[0];
}

function freeId(wanted: string, taken: Set<string>): string {
  for (let number = 2; ; number += 1) {
    const id = `${wanted.slice(0, 58)}-${number}`;
    if (taken.has(id)) continue;
    taken.add(id);
    return id;
  }
}

/** The entry without defaults, and with absolute paths. */
function entryToWrite({ id: _id, origin: _origin, baseDir, ...entry }: ServerSpec): ServerEntryInput {
  const defaults: ServerEntry = ServerEntrySchema.parse({});
  const written = Object.entries(entry).filter(([key, value]) => {
    // Both have the keys of ServerEntry; a key without a default compares with undefined.
    return value !== undefined && !isDeepStrictEqual(value, defaults[key as keyof ServerEntry]);
  });
  const cwd = entry.cwd === undefined ? {} : { cwd: resolve(baseDir, entry.cwd) };
  return { ...Object.fromEntries(written), ...cwd };
}

interface ImportSource {
  /** A client's id, or the path of a file. */
  readonly name: string;
  readonly files: readonly string[];
  readonly servers: readonly ServerSpec[];
  /** Servers of single agents, by the agent's id. */
  readonly roleServers: Readonly<Record<string, readonly ServerSpec[]>>;
  /** The rules of each agent, by its id. */
  readonly roles: DialectRead["roles"];
  /** Ids of entries that start Toolcrib itself. */
  readonly own: readonly string[];
}

/** Entries that cannot be read are skipped with a warning. A source without any readable entry is an error. */
async function readSource(invocation: Invocation, named: string): Promise<ImportSource> {
  const client = clientById(named);
  if (client !== undefined) return readClient(invocation, client);
  const file = resolve(invocation.cwd, expandTilde(named, userHome(invocation.env)));
  if (existsSync(file)) return readConfigFile(invocation, file);
  // A plain word may be a mistyped client.
  if (/^[\w -]+$/.test(named)) throw notFound(named, file);
  throw new ToolcribError("not_found", `The file ${file} does not exist.`);
}

function notFound(named: string, file: string): ToolcribError {
  const message = `There is no client ${JSON.stringify(named)}, and the file ${file} does not exist.`;
  return new ToolcribError("not_found", message, { hint: unknownClient(named).hint });
}

async function readClient(invocation: Invocation, client: AgentClient): Promise<ImportSource> {
  const place = clientEnvironment(invocation);
  if (client.id === "openclaw") {
    // Its agents have servers of their own, which only the reader of the whole file knows.
    const file = client.files(place).find(({ path }) => existsSync(path));
    if (file !== undefined) return { ...readConfigFile(invocation, file.path), name: client.id };
  }
  const wanted = clientScope(invocation);
  const ofUser = new Set(client.files(place).flatMap((file) => (isProjectFile(file) ? [] : [file.path])));
  // In the home they are the user's, which are read.
  const inFolder = client.files(place).filter((file) => isProjectFile(file) && !ofUser.has(file.path));
  // The servers of a cloned folder must not get into the user's config unnoticed.
  const isWanted = (file: ClientFile): boolean => wanted === "project" || !isProjectFile(file);
  const scoped: AgentClient = { ...client, files: (at) => client.files(at).filter(isWanted) };
  const { layers, warnings, broken, own, files } = await readServersOfClient(scoped, place);
  for (const { path } of wanted === "user" ? inFolder.filter((file) => existsSync(file.path)) : []) {
    invocation.out.note(`Skipped ${path}, because it belongs to this folder. Use --scope project to import it.`);
  }
  const servers = layers.flatMap((layer) => layer.servers);
  if (layers.length === 0 && broken.length > 0) throw invalidConfigError(broken);
  if (layers.length === 0) {
    throw new ToolcribError("not_found", `${client.name} has no config file on this machine.`, {
      hint: `Looked for ${files.join(", ")}`,
    });
  }
  warnAboutDiagnostics(invocation, [...warnings, ...broken]);
  if (own.length > 0) invocation.out.note(`Skipped, because it is Toolcrib itself: ${own.join(", ")}`);
  if (servers.length === 0 && own.length === 0) {
    throw new ToolcribError("not_found", `${client.name} has no MCP servers.`, {
      hint: `Read ${layers.map(({ file }) => file).join(", ")}`,
    });
  }
  return { name: client.id, files: layers.map(({ file }) => file), servers, roleServers: {}, roles: {}, own };
}

function readConfigFile(invocation: Invocation, file: string): ImportSource {
  const { env } = invocation;
  const text = readFileSync(file, "utf8");
  if (/\.(?:toml|ya?ml)$/i.test(file)) return readSnippet(invocation, file, text);
  const document = parseConfigText(file, text);
  if (document.errors.length > 0) throw invalidConfigError(document.errors);
  const { servers, roleServers, roles, warnings, problems, own } = readDialect(document.value, {
    file,
    document,
    userHome: userHome(env),
  });
  // Without a role's own server the role gets the shared one.
  const isRoleWrong = Object.values(roleServers).some((own) => own.some(({ problem }) => problem !== undefined));
  if ((servers.length === 0 || isRoleWrong) && problems.length > 0) throw invalidConfigError(problems);
  if (servers.length === 0 && own.length === 0 && Object.keys(roleServers).length === 0)
    return readSnippet(invocation, file, text);
  warnAboutDiagnostics(invocation, [...document.warnings, ...warnings, ...problems]);
  return { name: file, files: [file], servers, roleServers, roles, own };
}

/** A file in the form of a program that keeps its servers under a key of its own, or with one entry alone. */
function readSnippet({ out, env }: Invocation, file: string, text: string): ImportSource {
  const place = { origin: { file, dialect: "snippet" }, baseDir: dirname(file), userHome: userHome(env) };
  try {
    const { servers, warnings } = readSnippetFile(text, place);
    for (const warning of warnings) out.warn(`${file}: ${warning}`);
    return { name: file, files: [file], servers, roleServers: {}, roles: {}, own: [] };
  } catch (error) {
    const { code, message } = asToolcribError(error);
    if (code !== "invalid_arguments") throw error;
    throw new ToolcribError("not_found", `${file} has no MCP servers.`, { hint: message, cause: error });
  }
}

/** Credentials are reported later, and only for imported servers. */
function warnAboutDiagnostics({ out }: Invocation, diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    if (diagnostic.code !== "plain_credential") out.warn(renderDiagnostic(diagnostic));
  }
}

interface PlainCredential {
  readonly server: string;
  /** Such as `env.GITHUB_TOKEN`. */
  readonly key: string;
  /** A name for `toolcrib secrets set`. */
  readonly name: string;
}

function findPlainCredentials(server: string, entry: ServerEntryInput): PlainCredential[] {
  const found: PlainCredential[] = [];
  const add = (key: string, name: string): void => void found.push({ server, key, name: variableName(name) });
  for (const [name, value] of Object.entries(entry.env ?? {})) {
    if (isCredentialName(name) && isPlainText(value)) add(`env.${name}`, name);
  }
  for (const [name, value] of Object.entries(entry.headers ?? {})) {
    if (isCredentialName(name) && isPlainText(value)) add(`headers.${name}`, `${server}_${name}`);
  }
  for (const [index, arg] of (entry.args ?? []).entries()) {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.+))?$/s.exec(arg) ?? [];
    if (option === undefined || !isCredentialName(option)) continue;
    const next = value ?? entry.args?.[index + 1];
    if (next !== undefined && !next.startsWith("-") && isPlainText(next)) {
      add(`args[${value === undefined ? index + 1 : index}]`, `${server}_${option}`);
    }
  }
  return found;
}

function credentialAdvice({ server, key, name }: PlainCredential): string {
  return (
    `${server}: ${key} is a credential in plain text. ` +
    `To fix this, run \`toolcrib secrets set ${name}\` and replace it with the reference that is printed.`
  );
}

function variableName(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase()
    .slice(0, 64);
  return /^\d/.test(name) ? `_${name.slice(0, 63)}` : name;
}
