/** Reads one config of any dialect, with its imports, into a LoadedConfig, or says everything that is wrong with it. */
import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { findNearest } from "../base/near-matches.ts";
import { type ClientFile, type ClientId, isClientId } from "../clients/agent-client.ts";
import { type Config, type ConfigInput, ConfigSchema, type Limits } from "../model/config.ts";
import { systemErrorCode, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Diagnostic, LoadedConfig } from "../model/loaded-config.ts";
import { type ServerEntry, ServerEntrySchema, type ServerSpec } from "../model/server-spec.ts";
import {
  asSkipped,
  type ConfigDocument,
  type ConfigPath,
  duplicateServer,
  fileDiagnostic,
  formatPath,
  invalidConfigError,
  renderDiagnostic,
} from "./config-document.ts";
import { configProblems, configWarnings, serverProblems, serverWarnings } from "./config-rules.ts";
import { configNode, entryNode } from "./config-schema.ts";
import { adaptOwnEntry, dropHttpType, detectDialect, isClientFile, parseConfigText, readDialect } from "./dialects.ts";
import { asUnusable, type DialectName, EntryReader, isForeignContainer, writtenKey } from "./entry-reader.ts";
import { VscodeInputs } from "./editor-variables.ts";
import { clientFilesIn, expandTilde, localClientEnvironment, userHome } from "./find-config.ts";
import { withImportedSandbox, withServerDefaults, withSkillFolder } from "./server-defaults.ts";
import { describeAllowed, unknownKey, validateConfig } from "./validate-config.ts";

interface ReadOptions {
  /** A config given in code. */
  readonly config?: ConfigInput | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** By path: texts to use instead of the files. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  readonly home: string;
  /** Reads the imports; as they are if absent. */
  readonly read?: ReadText;
  readonly isProject?: boolean;
  /** Where relative paths start; the folder of the file if absent. */
  readonly baseDir?: string;
}

export async function readConfigFile(file: string, options: ReadOptions): Promise<LoadedConfig> {
  let text: string;
  try {
    text = options.texts?.get(file) ?? (await readFile(file, "utf8"));
  } catch (error) {
    const reason = systemErrorCode(error) ?? "unknown reason";
    throw new ToolcribError("invalid_config", `${file}: the file cannot be read (${reason})`, { cause: error });
  }
  return readConfig(parseConfigText(file, text), file, options);
}

export async function readConfig(
  document: ConfigDocument,
  file: string | null,
  options: ReadOptions,
): Promise<LoadedConfig> {
  const { env, cwd, home, isProject = false } = options;
  const baseDir = options.baseDir ?? (file === null ? resolve(cwd) : dirname(file));
  const primary = readOwnLayer(document, { baseDir, userHome: userHome(env), inCode: options.config !== undefined });
  const fromEnv = limitsFromEnv(isProject ? {} : env);
  const problems = [...document.errors, ...primary.problems, ...fromEnv.problems];
  const warnings = [...document.warnings, ...primary.warnings, ...fromEnv.warnings];

  const imports = await readImports({
    document,
    file,
    baseDir,
    home: options.config === undefined && !isProject ? home : null,
    list: primary.config.import,
    userHome: userHome(env),
    env,
    read: options.read ?? ((path) => readFile(path, "utf8")),
    clientFiles: isProject ? clientFilesIn(baseDir) : [],
  });
  warnings.push(...imports.warnings);
  const config: Config = {
    ...primary.config,
    limits: { ...primary.config.limits, ...fromEnv.limits },
    // A project defines no roles for the home by importing another program's agents.
    roles: isProject ? primary.config.roles : { ...imports.roles, ...primary.config.roles },
  };

  const own = primary.servers.map((spec) => withSkillFolder(spec, home));
  const imported = imports.layers.map((layer) => (layer.own ? layer : withHubSandbox(layer, config, warnings)));
  const merged = mergeLayers([{ file: document.file, servers: own }, ...imported], warnings);
  const servers = merged.map((spec) => withServerDefaults(spec, { config, baseDir }));
  if (servers.length > config.limits.servers) {
    const message = `found ${servers.length} servers in all; the limit is ${config.limits.servers}`;
    problems.push(document.report(["limits", "servers"], { severity: "error", code: "too_many_servers", message }));
  }
  if (problems.length > 0) throw invalidConfigError(problems);
  const files = [...(file === null ? [] : [file]), ...imports.files];
  const { unusable } = primary;
  return { config, file, baseDir, servers, warnings, unusable, files, inCode: options.config !== undefined };
}

interface OwnLayer {
  readonly config: Config;
  readonly servers: ServerSpec[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
  readonly unusable?: LoadedConfig["unusable"];
}

interface OwnPlace {
  readonly baseDir: string;
  readonly userHome: string;
  /** A program that gives a wrong entry gets an error, not a server that does not start. */
  readonly inCode: boolean;
}

/** The file itself. A bad entry costs its server: in a Toolcrib config it fails, in another program's file it is left out. */
function readOwnLayer(document: ConfigDocument, place: OwnPlace): OwnLayer {
  // After a syntax error the rest of the text cannot be relied on.
  if (document.errors.length > 0) return { config: defaults(), servers: [], problems: [], warnings: [] };
  const value = document.value === undefined ? {} : document.value;
  if (detectDialect(value, document.file) === "toolcrib") return readToolcribFile(document, value, place);
  const { baseDir, userHome: user } = place;
  const read = readDialect(value, { file: document.file, document, baseDir, userHome: user });
  const config = {
    ...defaults(),
    mcpServers: Object.fromEntries(read.servers.map((spec) => [spec.id, entryOf(spec)])),
    roles: read.roles,
  };
  const known = OTHER_TOP_KEYS[read.dialect];
  const warnings = [...(known === undefined ? [] : unknownTopKeys(document, value, known)), ...read.warnings];
  const servers = [...read.servers, ...serversOfRoles(read.roleServers)];
  if (servers.every(({ problem }) => problem !== undefined))
    return { config, servers, problems: read.problems, warnings };
  const skipped = read.problems.map((problem) => asSkipped(problem, "this server is left out"));
  return { config, servers, problems: [], warnings: [...warnings, ...skipped] };
}

function readToolcribFile(
  document: ConfigDocument,
  value: unknown,
  { baseDir, userHome: user, inCode }: OwnPlace,
): OwnLayer {
  const reader = new EntryReader(document, "toolcrib", { baseDir, userHome: user });
  const own = withOwnKeys(value, reader);
  const entries = entryPaths(own).map((path) => new FileEntry(document, path));
  const inEntries = (found: readonly Diagnostic[]): boolean =>
    found.every((problem) => entries.some((entry) => entry.contains(problem)));
  /** Gives the entries what is in them, and returns the rest. */
  const share = (found: readonly Diagnostic[], as = (each: Diagnostic, _entry: string) => each): Diagnostic[] =>
    found.filter((each) => {
      const entry = entries.find((one) => one.contains(each));
      entry?.problems.push(as(each, entry.at));
      return entry === undefined;
    });

  const first = validateConfig(document, [], own, ConfigSchema, configNode());
  const warnings = first.warnings.map((each) => withImportHint(each, own));
  const refused = (): OwnLayer => ({ config: defaults(), servers: [], problems: first.problems, warnings });
  let { output } = first;
  if (output === undefined) {
    if (inCode || !inEntries(first.problems)) return refused();
    share(first.problems);
    const wrong = entries.filter(({ problems }) => problems.length > 0).map(({ path }) => path);
    ({ output } = validateConfig(document, [], wrong.reduce(withoutPath, own), ConfigSchema, configNode()));
    if (output === undefined) return refused();
  }

  const config = output;
  const found = [
    ...configProblems(document, config),
    ...entries.flatMap(({ path }) => {
      const entry = entryAt(config, path);
      return entry === undefined ? [] : serverProblems(document, path, entry);
    }),
  ];
  const outside = inCode ? found : share(found);
  const others = share(warnings, asUnusable);
  const told = [...reader.warnings, ...configWarnings(document, config)];
  const unusable = new Map<string, readonly Diagnostic[]>();
  // Without a prototype: a role may be called `constructor`.
  const byRole: Record<string, ServerSpec[]> = Object.create(null);
  const shared: ServerSpec[] = [];
  const taken = new Set(Object.keys(config.mcpServers));
  for (const { path, role, problems: wrong } of entries) {
    const key = String(path.at(-1));
    const entry = entryAt(config, path);
    const id = entry === undefined ? reader.validId(key, path, taken) : key;
    const spec: ServerSpec = {
      ...(entry ?? usableParts(document, own, path)),
      id,
      origin: { file: document.file, dialect: "toolcrib" },
      baseDir,
    };
    if (entry !== undefined) told.push(...serverWarnings(document, path, entry));
    told.push(...wrong.map((problem) => asSkipped(problem, "this server is not started")));
    const list = role === undefined ? shared : (byRole[role] ??= []);
    list.push(wrong.length === 0 ? spec : { ...spec, problem: wrong.map(renderDiagnostic).join("; ") });
    if (wrong.length > 0) unusable.set(role === undefined ? id : `${id}@${role}`, wrong);
  }
  const servers = [...shared, ...serversOfRoles(byRole)];
  // Whoever has to correct the file anyway learns everything at once.
  const problems = outside.length === 0 ? [] : [...first.problems, ...found];
  return { config, servers, problems, warnings: [...told, ...others], unusable };
}

/** Says of a key under which another program has its servers what to do with them. */
function withImportHint(warning: Diagnostic, own: unknown): Diagnostic {
  if (warning.code !== "unknown_key" || !isJsonObject(own)) return warning;
  const key = Object.keys(own).find((each) => formatPath([each]) === warning.path);
  if (key === undefined || !isForeignContainer(key, own[key])) return warning;
  const hint = 'servers are under "mcpServers" here; toolcrib import <file> reads the form of another program';
  return { ...warning, hint };
}

/** Where a file has an entry of a server, and what is wrong in it. */
class FileEntry {
  readonly path: ConfigPath;
  readonly problems: Diagnostic[] = [];
  readonly at: string;

  constructor(document: ConfigDocument, path: ConfigPath) {
    this.path = path;
    this.at = formatPath(document.writtenPath(path));
  }

  /** The role whose server it is. */
  get role(): string | undefined {
    return this.path[0] === "roles" ? String(this.path[1]) : undefined;
  }

  contains({ path }: Diagnostic): boolean {
    return path === this.at || path.startsWith(`${this.at}.`) || path.startsWith(`${this.at}[`);
  }
}

function entryPaths(config: unknown): ConfigPath[] {
  const below = (value: unknown, path: ConfigPath): ConfigPath[] =>
    isJsonObject(value) && isJsonObject(value["mcpServers"])
      ? Object.keys(value["mcpServers"]).map((id) => [...path, "mcpServers", id])
      : [];
  const roles = isJsonObject(config) && isJsonObject(config["roles"]) ? config["roles"] : {};
  return [...below(config, []), ...Object.entries(roles).flatMap(([role, value]) => below(value, ["roles", role]))];
}

function entryAt({ mcpServers, roles }: Config, path: ConfigPath): ServerEntry | undefined {
  const map = path[0] === "roles" ? roles[String(path[1])]?.mcpServers : mcpServers;
  const id = String(path.at(-1));
  return map !== undefined && Object.hasOwn(map, id) ? map[id] : undefined;
}

/** A copy without what is at the path. */
function withoutPath(value: unknown, [step = "", ...rest]: ConfigPath): unknown {
  if (!isJsonObject(value)) return value;
  const { [step]: inner, ...others } = value;
  return rest.length === 0 ? others : { ...others, [step]: withoutPath(inner, rest) };
}

/** An entry without the keys that have a wrong value, to show what it describes. It is never started. */
function usableParts(document: ConfigDocument, config: unknown, path: ConfigPath): ServerEntry {
  const raw = path.reduce<unknown>((value, step) => (isJsonObject(value) ? value[step] : undefined), config);
  const right = Object.entries(isJsonObject(raw) ? raw : {}).flatMap(([key, value]) => {
    const { output } = validateConfig(document, path, { [key]: value }, ServerEntrySchema, entryNode());
    return Object.entries(output ?? {}).filter(([known]) => known === key);
  });
  const entry: ServerEntry = { ...ServerEntrySchema.parse({}), ...Object.fromEntries(right) };
  // Where it is not known who may see it, no one does.
  return isJsonObject(raw) && "roles" in raw && entry.roles === undefined ? { ...entry, roles: [] } : entry;
}

/**
 * A config whose server entries have Toolcrib's own keys, under ids that are valid: READMEs name servers `@acme/files`. The
 * `servers` and `inputs` of a snippet for VS Code are read as well; of two entries with one id that of `mcpServers` counts.
 */
function withOwnKeys(value: unknown, reader: EntryReader): unknown {
  if (!isJsonObject(value)) return value;
  const { servers, inputs, ...rest } = value;
  const config: JsonObject = isJsonObject(servers) ? rest : { ...value };
  const known = new VscodeInputs(inputs, ["inputs"], reader);
  if (Array.isArray(inputs)) delete config["inputs"];
  const adapted = (
    map: JsonObject,
    path: ConfigPath,
    { written = path, prepare = (entry: JsonObject) => entry } = {},
  ): JsonObject => {
    const taken = new Set(Object.keys(map));
    return Object.fromEntries(
      Object.entries(map).map(([name, raw]) => {
        const at = [...written, name];
        const id = reader.validId(name, at, taken);
        taken.add(id);
        reader.document.setWritten([...path, id], at);
        if (!isJsonObject(raw)) return [id, raw];
        const entry = adaptOwnEntry(prepare(raw), at, reader, known);
        for (const key of Object.keys(entry)) {
          reader.document.setWritten([...path, id, key], [...at, writtenKey(raw, key)]);
        }
        return [id, entry];
      }),
    );
  };
  const own = config["mcpServers"] ?? {};
  if (isJsonObject(own) && ("mcpServers" in config || isJsonObject(servers))) {
    const foreign = isJsonObject(servers)
      ? adapted(servers, ["mcpServers"], { written: ["servers"], prepare: (entry) => dropHttpType({ ...entry }) })
      : {};
    config["mcpServers"] = { ...foreign, ...adapted(own, ["mcpServers"]) };
  }
  if (isJsonObject(config["roles"])) {
    config["roles"] = Object.fromEntries(
      Object.entries(config["roles"]).map(([id, role]) =>
        isJsonObject(role) && isJsonObject(role["mcpServers"])
          ? [id, { ...role, mcpServers: adapted(role["mcpServers"], ["roles", id, "mcpServers"]) }]
          : [id, role],
      ),
    );
  }
  return config;
}

/** By dialect: top-level keys that are not ours. Files of the other dialects are full of them. */
const OTHER_TOP_KEYS: Partial<Record<DialectName, readonly string[]>> = {
  claude: [],
  vscode: ["servers", "inputs", "mcp"],
};

/** Other keys of a client's own file are that client's; elsewhere they are likely a mistyped key of ours. */
function unknownTopKeys(document: ConfigDocument, value: unknown, others: readonly string[]): Diagnostic[] {
  if (!isJsonObject(value) || isClientFile(basename(document.file))) return [];
  const known = [...Object.keys(ConfigSchema.shape), ...others];
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => unknownKey(document, [key], key, known));
}

function defaults(): Config {
  return ConfigSchema.parse({}, { jitless: true });
}

function entryOf({ id: _id, origin: _origin, baseDir: _baseDir, ...entry }: ServerSpec): ServerEntry {
  return entry;
}

// Other files with servers: the `import` list, and the home's etc/mcp-servers.json.

/** The servers of one file. */
interface ServerLayer {
  readonly file: string;
  readonly servers: readonly ServerSpec[];
  /** Toolcrib's own, not another program's or a project's. */
  readonly own?: boolean;
}

interface ImportOptions {
  readonly document: ConfigDocument;
  /** The importing file. */
  readonly file: string | null;
  readonly baseDir: string;
  /** null for a config given in code: it names all it wants. */
  readonly home: string | null;
  readonly list: readonly string[];
  readonly userHome: string;
  readonly env: NodeJS.ProcessEnv;
  /** Reads what a list names, apart from files that are the user's own at another program. */
  readonly read: ReadText;
  /** Files of clients in the folder of a project, which are read although the list does not name them. */
  readonly clientFiles: readonly string[];
}

/** Rejects with an error that has a `code`, as Node's own does. */
export type ReadText = (file: string) => Promise<string>;

interface Imports {
  /** In the order in which they win. */
  readonly layers: ServerLayer[];
  readonly warnings: Diagnostic[];
  /** Agents of the imported files; a role of the same name in the config counts instead. */
  readonly roles: Record<string, Config["roles"][string]>;
  /** All that were looked for, there or not. */
  readonly files: string[];
}

/** A file that is missing or broken is a warning: it belongs to another program and must not stop this one. */
async function readImports(options: ImportOptions): Promise<Imports> {
  const { document, baseDir, home, list, userHome } = options;
  const imports: Imports = { layers: [], warnings: [], roles: {}, files: [] };
  const seen = new Set(options.file === null ? [] : [options.file]);
  const report = (index: number, reason: string | undefined): void => {
    if (reason === undefined) return;
    const message = `${reason}; nothing is imported from it`;
    imports.warnings.push(document.report(["import", index], { severity: "warning", code: "missing_import", message }));
  };
  const { clientFiles } = options;
  const isInProject = ({ path }: { readonly path: string }): boolean => clientFiles.includes(path);
  for (const [index, item] of list.entries()) {
    if (isClientId(item)) {
      report(index, await importClient(item, options, seen, imports));
      continue;
    }
    const file = resolve(baseDir, expandTilde(item, userHome));
    if (seen.has(file)) continue;
    seen.add(file);
    imports.files.push(file);
    const reason = await importFile(file, options, imports);
    report(index, reason && `the file ${file} ${reason}`);
  }
  if (clientFiles.length > 0) {
    for (const id of PROJECT_CLIENTS) await importClient(id, options, seen, imports, isInProject);
  }
  const etc = home === null ? null : join(home, "etc", "mcp-servers.json");
  if (etc === null || seen.has(etc)) return imports;
  imports.files.push(etc);
  const reason = await importFile(etc, options, imports, true);
  if (reason !== undefined && reason !== MISSING) {
    const message = `the file ${reason}; it is skipped`;
    imports.warnings.push(fileDiagnostic(etc, "", { severity: "warning", code: "missing_import", message }));
  }
  return imports;
}

/** Those whose files `clientFilesIn` knows. */
const PROJECT_CLIENTS: readonly ClientId[] = ["claude-code", "cursor", "vscode", "continue"];

/** Why there is nothing to read, if so. */
async function importClient(
  id: ClientId,
  options: ImportOptions,
  seen: Set<string>,
  imports: Imports,
  only?: (file: ClientFile) => boolean,
): Promise<string | undefined> {
  const { baseDir, env, read } = options;
  // Loaded when a config names a client: readers of YAML and TOML are large.
  const [{ clientById }, { isInstalled, isSameEntry, readServersOfClient }] = await Promise.all([
    import("../clients/clients.ts"),
    import("./client-servers.ts"),
  ]);
  const client = clientById(id);
  if (client === undefined) return `there is no client ${id}`;
  const place = localClientEnvironment(env, baseDir);
  if (id === "openclaw") {
    // Its agents have servers and rules of their own, which only the reader of the whole file knows.
    const paths = client.files(place).map(({ path }) => path);
    const fresh = paths.filter((path) => !seen.has(path));
    for (const path of fresh) {
      seen.add(path);
      imports.files.push(path);
      const reason = await importFile(path, options, imports);
      if (reason !== undefined && reason !== MISSING) return `the file ${path} ${reason}`;
    }
    return isInstalled(client, place) ? undefined : `${client.name} is not installed here`;
  }
  const { layers, warnings, broken, files } = await readServersOfClient(client, place, {
    readProject: read,
    only: (file) => !seen.has(file.path) && (only === undefined || only(file)),
  });
  // Teams keep one server in the files of several clients.
  const known = imports.layers.flatMap(({ servers }) => servers);
  const isKnown = (spec: ServerSpec): boolean => known.some((each) => each.id === spec.id && isSameEntry(each, spec));
  imports.layers.push(
    ...layers.map((layer) => ({ ...layer, servers: layer.servers.filter((spec) => !isKnown(spec)) })),
  );
  imports.warnings.push(...warnings, ...broken.map((problem) => asSkipped(problem, "the file is skipped")));
  imports.files.push(...files);
  for (const file of files) seen.add(file);
  return isInstalled(client, place) || layers.length > 0 ? undefined : `${client.name} is not installed here`;
}

const MISSING = "does not exist";

/** Why the file cannot be read, if it cannot. */
async function importFile(
  file: string,
  { userHome, read: readText }: Pick<ImportOptions, "userHome" | "read">,
  imports: Imports,
  own = false,
): Promise<string | undefined> {
  let text: string;
  try {
    text = await readText(file);
  } catch (error) {
    const code = systemErrorCode(error) ?? "unknown reason";
    return code === "ENOENT" ? MISSING : `cannot be read (${code})`;
  }
  const document = parseConfigText(file, text);
  imports.warnings.push(...document.warnings);
  if (document.errors.length > 0) {
    imports.warnings.push(...document.errors.map((error) => asSkipped(error, "the file is skipped")));
    return undefined;
  }
  const value = document.value === undefined ? {} : document.value;
  const read = readDialect(value, { file, document, userHome });
  imports.layers.push({ file, servers: [...read.servers, ...serversOfRoles(read.roleServers)], own });
  for (const [role, rules] of Object.entries(read.roles)) imports.roles[role] ??= rules;
  imports.warnings.push(
    ...read.warnings,
    ...read.problems.map((problem) => asSkipped(problem, "this server is skipped")),
  );
  return undefined;
}

/** The layer with the sandbox that this config gives all servers. An image that could then not be run is left out. */
export function withHubSandbox({ file, servers }: ServerLayer, config: Config, warnings: Diagnostic[]): ServerLayer {
  const specs = servers.flatMap((given) => {
    const { spec, ignored } = withImportedSandbox(given, { config });
    if (!ignored) return [spec];
    const isLost = spec.command === undefined && spec.url === undefined;
    const message = `sandbox of an imported server is not used, because this config has one for all${
      isLost ? "; without it this server cannot be started and is left out" : ""
    }`;
    warnings.push(fileDiagnostic(file, `${given.id}.sandbox`, { severity: "warning", code: "not_read", message }));
    return isLost ? [] : [spec];
  });
  return { file, servers: specs };
}

/**
 * Earlier layers win. The rules of a shared server apply to one that takes its place, wherever that is from: where not all of
 * them are known, neither is started.
 */
export function mergeLayers(layers: readonly ServerLayer[], warnings: Diagnostic[]): ServerSpec[] {
  const byId = new Map<string, ServerSpec>();
  for (const { file, servers } of layers) {
    for (const spec of servers) {
      const earlier = byId.get(spec.id);
      if (earlier === undefined) byId.set(spec.id, spec);
      else warnings.push(duplicateServer(spec.id, file, earlier.origin.file));
    }
  }
  return [...byId.values()].map((spec) => {
    const shared = spec.replaces === undefined ? undefined : byId.get(spec.replaces)?.problem;
    return shared === undefined ? spec : { ...spec, problem: [spec.problem ?? [], shared].flat().join("; ") };
  });
}

/**
 * Servers of one role, as separate servers: `github` of the role `reviewer` is `github@reviewer`, visible to that role only,
 * and replaces the hub's `github` for it.
 */
function serversOfRoles(byRole: Readonly<Record<string, readonly ServerSpec[]>>): ServerSpec[] {
  return Object.entries(byRole).flatMap(([role, specs]) =>
    specs.map((spec) => ({
      ...spec,
      id: `${spec.id}@${role}`,
      name: spec.name ?? spec.id,
      roles: [role],
      replaces: spec.id,
    })),
  );
}

/** `TOOLCRIB_LIMITS_<KEY>`: limits that the environment sets over the file. */
const LIMITS_PREFIX = "TOOLCRIB_LIMITS_";

interface LimitsFromEnv {
  readonly limits: Partial<Limits>;
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** `TOOLCRIB_LIMITS_CALLS_PER_MINUTE` and `TOOLCRIB_LIMITS_CALLSPERMINUTE` both work; an empty value counts as unset. */
export function limitsFromEnv(env: NodeJS.ProcessEnv): LimitsFromEnv {
  const known = configNode().properties?.["limits"]?.properties ?? {};
  const keyOf = new Map(Object.keys(known).map((key) => [key.toLowerCase(), key]));
  const limits: Record<string, number> = {};
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(LIMITS_PREFIX) || text === undefined || text.trim() === "") continue;
    const key = keyOf.get(name.slice(LIMITS_PREFIX.length).replaceAll("_", "").toLowerCase());
    const node = key === undefined ? undefined : known[key];
    if (key === undefined || node === undefined) {
      const names = Object.keys(known).map(limitVariable);
      const meant = findNearest(name, names) ?? names.join(", ");
      const message = "unknown limit is ignored";
      const hint = `did you mean ${meant}?`;
      warnings.push(fileDiagnostic("environment", name, { severity: "warning", code: "unknown_key", message, hint }));
    } else if (!/^\d{1,15}$/.test(text.trim()) || Number(text) === 0) {
      const found = text.length > 40 ? "a string" : JSON.stringify(text);
      const message = `found ${found}; expected ${describeAllowed(node)}`;
      problems.push(fileDiagnostic("environment", name, { severity: "error", code: "wrong_value", message }));
    } else limits[key] = Number(text);
  }
  return { limits, problems, warnings };
}

/** `callsPerMinute` as `TOOLCRIB_LIMITS_CALLS_PER_MINUTE`. */
export function limitVariable(key: string): string {
  return LIMITS_PREFIX + key.replace(/[A-Z]/g, "_$&").toUpperCase();
}
