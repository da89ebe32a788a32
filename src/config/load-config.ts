/** Loads a config of any dialect, with its imports, into one LoadedConfig, or says everything that is wrong with it. */
import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { ConfigSchema, type Config, type ConfigInput } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { ServerEntry, ServerSpec } from "../model/server-spec.ts";
import { agentWarnings, sessionsProblems } from "./agent-rules.ts";
import { cageWarnings, defaultCageProblems } from "./cage-rules.ts";
import { clusterProblems, clusterWarnings } from "./cluster-rules.ts";
import type { ConfigPath } from "./config-path.ts";
import { asWarning, invalidConfig, type Diagnostic } from "./diagnostics.ts";
import { detectDialect, isClientFile, readDialect } from "./dialects/detect.ts";
import { Document } from "./document.ts";
import { withCage, withSkillFolder } from "./effective-cage.ts";
import { configIn, findConfig, toolcribHome, userHome } from "./find-config.ts";
import { httpWarnings } from "./http-rules.ts";
import { mergeLayers, readImports, type ReadText, withoutSay } from "./imports.ts";
import { unknownKey } from "./inspect.ts";
import { configNode } from "./json-schema.ts";
import { limitsFromEnv } from "./limits-env.ts";
import { type ProjectLayer, type ProjectReading, withProject } from "./project-config.ts";
import { parseConfigText } from "./read-document.ts";
import { roleServers } from "./role-servers.ts";
import { serverProblems, serverWarnings } from "./server-rules.ts";
import { storeWarnings } from "./store-rules.ts";
import {
  isTrusted,
  readPlainFile,
  readTrust,
  recordOf,
  saveTrust,
  strangersAt,
  trustCommand,
  trustFile,
  trustSubject,
} from "./trust.ts";
import { validate } from "./validate.ts";

export interface LoadOptions {
  /** Path of a config file of any dialect; searched for if neither this nor `config` is given. */
  readonly file?: string | undefined;
  /** A config given in code. */
  readonly config?: ConfigInput | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Toolcrib's home; `$TOOLCRIB_HOME` or `~/.toolcrib` if absent. */
  readonly home?: string | undefined;
  /** By path: what counts instead of what the config file holds, where that cannot be changed. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  /** Where it was found before: it is read from there, whatever else would be found by now. */
  readonly searched?: Searched | undefined;
  /** Asked about a project config that is not trusted as it is; without it such a config is left out. */
  readonly onUntrusted?: TrustQuestion | undefined;
  /** The version of the project config that was in use: it stays while a newer one is not trusted. */
  readonly inUse?: ProjectReading | undefined;
}

/** The files of a config that was searched for; null for one that was not there. */
export interface Searched {
  readonly home: string | null;
  readonly project: string | null;
}

/** `trust` is written down, `use` is for this time only. */
export type TrustQuestion = (
  project: ProjectReading,
  state: "new" | "changed",
) => Promise<"trust" | "use" | "leave"> | "trust" | "use" | "leave";

/** Of a warning that a project config was left out, or that an earlier version of it is in use. */
export const UNTRUSTED = "untrusted_config";

export interface LoadedConfig {
  /** Defaults filled in. `mcpServers` holds the servers of the file itself; `servers` holds all. */
  readonly config: Config;
  /** null for a config given in code, and if no file was found. Never the project's. */
  readonly file: string | null;
  /** Where relative paths of the config start. */
  readonly baseDir: string;
  /** Those of the file, of its imports and of the home's etc/mcp-servers.json. Strings keep their references. */
  readonly servers: ServerSpec[];
  readonly warnings: Diagnostic[];
  /** Absolute paths of everything it was read from, also of imports that are missing: they may come. */
  readonly files: readonly string[];
  /** True if it was given in code: then there is no place from which it could be loaded again. */
  readonly inCode: boolean;
  /** Where it was found, if no file was named. */
  readonly searched?: Searched;
  /** The trusted project config that was added. */
  readonly project?: ProjectLayer;
  /** What else decides about it: the project config that was left out, and the file that trust is kept in. */
  readonly watched?: readonly string[];
}

/** Rejects with `invalid_config` that lists every problem, or `not_found` for a named file that is not there. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd, config, searched } = options;
  const home = options.home ?? toolcribHome(env);
  if (config !== undefined) return read(Document.ofValue("library", config), null, { ...options, home });
  const found = searched ?? findConfig({ config: options.file, env, cwd, home });
  if ("named" in found) return readFileAt(found.named, { ...options, home });
  // The home's may have come since.
  const file = found.home ?? configIn(home) ?? null;
  const base =
    file === null
      ? await read(Document.ofValue("library", {}), null, { ...options, home })
      : await readFileAt(file, { ...options, home });
  const searchedNow = { home: file, project: found.project };
  return { ...(await addProject(base, found.project, { ...options, home })), searched: searchedNow };
}

interface ReadOptions extends Pick<LoadOptions, "env" | "cwd" | "config" | "texts"> {
  readonly home: string;
  /** Reads the imports; as they are if absent. */
  readonly read?: ReadText;
  readonly isProject?: boolean;
}

async function readFileAt(file: string, options: ReadOptions): Promise<LoadedConfig> {
  let text: string;
  try {
    text = options.texts?.get(file) ?? (await readFile(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    throw new ToolcribError("invalid_config", `${file}: the file cannot be read (${reason})`, { cause: error });
  }
  return read(parseConfigText(file, text), file, options);
}

async function read(document: Document, file: string | null, options: ReadOptions): Promise<LoadedConfig> {
  const { env, cwd, home, isProject = false } = options;
  const baseDir = file === null ? resolve(cwd) : dirname(file);
  const primary = readOwnLayer(document, baseDir, userHome(env));
  const fromEnv = limitsFromEnv(isProject ? {} : env);
  const problems = [...document.errors, ...primary.problems, ...fromEnv.problems];
  const warnings = [...document.warnings, ...primary.warnings, ...fromEnv.warnings];

  const config: Config = { ...primary.config, limits: { ...primary.config.limits, ...fromEnv.limits } };
  const imports = await readImports({
    document,
    file,
    baseDir,
    home: options.config === undefined && !isProject ? home : null,
    list: config.import,
    userHome: userHome(env),
    env,
    read: options.read ?? ((path) => readFile(path, "utf8")),
  });
  warnings.push(...imports.warnings);

  const own = primary.servers.map((spec) => withSkillFolder(spec, home));
  const imported = imports.layers.map((layer) => (layer.own ? layer : withoutSay(layer, config, warnings)));
  const merged = mergeLayers([{ file: document.file, servers: own }, ...imported], warnings);
  const servers = merged.map((spec) => withCage(spec, { config, baseDir }));
  if (servers.length > config.limits.servers) {
    const message = `found ${servers.length} servers in all; allowed are ${config.limits.servers}`;
    problems.push(document.report(["limits", "servers"], { severity: "error", code: "too_many_servers", message }));
  }
  if (problems.length > 0) throw invalidConfig(problems);
  const files = [...(file === null ? [] : [file]), ...imports.files];
  return { config, file, baseDir, servers, warnings, files, inCode: options.config !== undefined };
}

type ProjectOptions = Pick<LoadOptions, "env" | "cwd" | "onUntrusted" | "inUse"> & { readonly home: string };

/** The config with a project's, as far as that is trusted. One that is not is no reason to stop. */
async function addProject(base: LoadedConfig, file: string | null, options: ProjectOptions): Promise<LoadedConfig> {
  if (file === null || file === base.file) return base;
  const watched = [file, trustFile(options.home)];
  const leftOut = (message: string, hint: string): LoadedConfig => {
    const warning = { severity: "warning", code: UNTRUSTED, file, line: 0, column: 0, path: "", message, hint } as const;
    return { ...base, warnings: [...base.warnings, warning], watched };
  };
  if (base.config.cluster !== undefined) {
    return leftOut("a node of a cluster takes no project config; it was left out", "Name it with --config to use it.");
  }
  const { reading, warning } = await trustedProject(file, options);
  if (reading === undefined) return leftOut(warning?.message ?? "", warning?.hint ?? "");
  if (reading.failure !== undefined) throw reading.failure;
  const added = withProject(warning === undefined ? base : leftOut(warning.message, warning.hint), reading);
  return { ...added, watched: [...watched, ...reading.texts.keys()] };
}

interface Judged {
  /** The version to use. */
  readonly reading?: ProjectReading;
  readonly warning?: { readonly message: string; readonly hint: string };
}

async function trustedProject(file: string, options: ProjectOptions): Promise<Judged> {
  const { home, onUntrusted, inUse } = options;
  const { table, problem } = await readTrust(home);
  const record = table.get(file);
  const refused = (who: string): Judged => ({
    warning: {
      message: `this project config was left out: ${who}`,
      hint: `If that is meant to be so: ${trustCommand(file, true)}`,
    },
  });
  const strangers = record?.shared === true ? undefined : await strangersAt(file);
  if (strangers !== undefined) return refused(strangers);
  const hint =
    problem === undefined
      ? `Look at it, then run: ${trustCommand(file)}`
      : `${trustFile(home)} ${problem}; mend or remove it.`;
  // What nobody vouched for and nobody can be asked about is not even read.
  if (record === undefined && onUntrusted === undefined) {
    return { warning: { message: "this project config is not trusted and was left out", hint } };
  }
  const reading = await readProject(file, options);
  if (record?.shared !== true) {
    for (const path of reading.texts.keys()) {
      const others = await strangersAt(path);
      if (others !== undefined) return refused(others);
    }
  }
  if (isTrusted(record, reading)) return { reading };
  const answer = (await onUntrusted?.(reading, record === undefined ? "new" : "changed")) ?? "leave";
  if (answer === "trust") await saveTrust(home, file, recordOf(reading, record?.shared === true));
  if (answer !== "leave") return { reading };
  const why = reading.failure === undefined ? "" : ` (${reading.failure.message.split("\n", 1)[0]})`;
  if (record === undefined) {
    return { warning: { message: `this project config is not trusted and was left out${why}`, hint } };
  }
  if (inUse?.file === file && isTrusted(record, inUse)) {
    const message = `this project config changed since it was trusted; the version before stays in use${why}`;
    return { reading: inUse, warning: { message, hint } };
  }
  return { warning: { message: `this project config changed since it was trusted and was left out${why}`, hint } };
}

/**
 * Reads a project config with everything that belongs to it: each file once, so that what is trusted is what is used.
 * @param given Texts that count instead of the files; null for a file that is not there.
 */
export async function readProject(
  file: string,
  options: Pick<LoadOptions, "env" | "cwd"> & { readonly home: string },
  given: ReadonlyMap<string, string | null> = new Map(),
): Promise<ProjectReading> {
  const texts = new Map<string, string | null>();
  const readText: ReadText = async (path) => {
    const known = texts.get(path) ?? given.get(path);
    if (known === null) throw Object.assign(new Error("there is no such file"), { code: "ENOENT" });
    texts.set(path, null);
    const text = known ?? (await readPlainFile(path));
    texts.set(path, text);
    return text;
  };
  let document = Document.ofValue(file, {});
  let loaded: LoadedConfig | undefined;
  let failure: ToolcribError | undefined;
  try {
    document = parseConfigText(file, await readText(file));
    loaded = await read(document, file, { ...options, read: readText, isProject: true });
    for (const plugin of loaded.config.plugins) await readText(resolve(loaded.baseDir, plugin));
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    failure =
      error instanceof ToolcribError
        ? error
        : new ToolcribError("invalid_config", `${file}: a file of it cannot be read (${reason})`, { cause: error });
  }
  const others = new Map([...texts].filter(([path]) => path !== file));
  // A text that does not parse is nothing but itself.
  const value = document.errors.length > 0 ? { unreadable: texts.get(file) } : document.value;
  const real = await realpath(file).catch(() => file);
  return { file, texts, value, loaded, failure, ...trustSubject({ real, value, others }) };
}

interface OwnLayer {
  readonly config: Config;
  readonly servers: ServerSpec[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** The file itself. In one of our own a bad entry is an error; in another program's the entry is left out, as there. */
function readOwnLayer(document: Document, baseDir: string, user: string): OwnLayer {
  // After a syntax error the rest of the text means nothing reliable.
  if (document.errors.length > 0) return { config: defaults(), servers: [], problems: [], warnings: [] };
  const value = document.value === undefined ? {} : document.value;
  if (detectDialect(value, document.file) === "toolcrib") return readToolcribFile(document, value, baseDir);
  const read = readDialect(value, { file: document.file, document, baseDir, userHome: user });
  const config = {
    ...defaults(),
    mcpServers: Object.fromEntries(read.servers.map((spec) => [spec.id, entryOf(spec)])),
  };
  const strangers = read.dialect === "claude" ? unknownTopKeys(document, value) : [];
  const bad = read.problems.map((problem) =>
    asWarning({ ...problem, message: `${problem.message}; this server is left out` }),
  );
  const servers = [...read.servers, ...roleServers(read.roleServers)];
  if (servers.length === 0)
    return { config, servers, problems: read.problems, warnings: [...strangers, ...read.warnings] };
  return { config, servers, problems: [], warnings: [...strangers, ...read.warnings, ...bad] };
}

function readToolcribFile(document: Document, value: unknown, baseDir: string): OwnLayer {
  const { output, problems, warnings } = validate(document, [], value, ConfigSchema, configNode());
  if (output === undefined) return { config: defaults(), servers: [], problems, warnings };
  const found: { problems: Diagnostic[]; warnings: Diagnostic[] } = {
    problems: [
      ...problems,
      ...sessionsProblems(document, output.sessions),
      ...defaultCageProblems(document, output),
      ...clusterProblems(document, output),
    ],
    warnings: [
      ...warnings,
      ...httpWarnings(document, output.http),
      ...storeWarnings(document, output),
      ...agentWarnings(document, output.agent),
      ...cageWarnings(document, ["sandbox"], output.sandbox),
      ...cageWarnings(document, ["skills", "sandbox"], output.skills.sandbox),
      ...clusterWarnings(document, output),
    ],
  };
  const specsAt = (path: ConfigPath, entries: Readonly<Record<string, ServerEntry>>): ServerSpec[] =>
    Object.entries(entries).map(([id, entry]) => {
      found.problems.push(...serverProblems(document, [...path, id], entry));
      found.warnings.push(...serverWarnings(document, [...path, id], entry));
      return { ...entry, id, origin: { file: document.file, dialect: "toolcrib" }, baseDir };
    });
  const shared = specsAt(["mcpServers"], output.mcpServers);
  const ofRoles = Object.entries(output.roles).map(([role, { mcpServers = {} }]): [string, ServerSpec[]] => [
    role,
    specsAt(["roles", role, "mcpServers"], mcpServers),
  ]);
  return { config: output, servers: [...shared, ...roleServers(Object.fromEntries(ofRoles))], ...found };
}

/** Other keys of a client's own file are that client's; elsewhere they are likely a mistyped key of ours. */
function unknownTopKeys(document: Document, value: unknown): Diagnostic[] {
  if (!isJsonObject(value) || isClientFile(basename(document.file))) return [];
  const known = Object.keys(ConfigSchema.shape);
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => unknownKey(document, [key], key, known));
}

function defaults(): Config {
  return ConfigSchema.parse({});
}

function entryOf({ id: _id, origin: _origin, baseDir: _baseDir, ...entry }: ServerSpec): ServerEntry {
  return entry;
}
