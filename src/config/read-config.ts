/** Reads one config of any dialect, with its imports, into a LoadedConfig, or says everything that is wrong with it. */
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { ConfigSchema, type Config, type ConfigInput } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { ServerEntry, ServerSpec } from "../model/server-spec.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import { agentWarnings, sessionsProblems } from "./agent-rules.ts";
import { cageWarnings, defaultCageProblems } from "./cage-rules.ts";
import { clusterProblems, clusterWarnings } from "./cluster-rules.ts";
import type { ConfigPath } from "./config-path.ts";
import { asWarning, invalidConfig, type Diagnostic } from "./diagnostics.ts";
import { detectDialect, isClientFile, readDialect } from "./dialects/detect.ts";
import { Document } from "./document.ts";
import { withCage, withSkillFolder } from "./effective-cage.ts";
import { userHome } from "./find-config.ts";
import { httpWarnings } from "./http-rules.ts";
import { mergeLayers, readImports, type ReadText, withoutSay } from "./imports.ts";
import { unknownKey } from "./inspect.ts";
import { configNode } from "./json-schema.ts";
import { limitsFromEnv } from "./limits-env.ts";
import { parseConfigText } from "./read-document.ts";
import { roleServers } from "./role-servers.ts";
import { serverProblems, serverWarnings } from "./server-rules.ts";
import { storeWarnings } from "./store-rules.ts";
import type { TrustSubject } from "./trust.ts";
import { validate } from "./validate.ts";

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

/** The files of a config that was searched for; null for one that was not there. */
export interface Searched {
  readonly home: string | null;
  readonly project: string | null;
}

/** A project config as it was read, with everything that belongs to it. */
export interface ProjectReading extends TrustSubject {
  readonly file: string;
  /** Every file of it, by path; null for one that is not there. */
  readonly texts: ReadonlyMap<string, string | null>;
  readonly value: unknown;
  /** By itself; undefined if it cannot be used, and `failure` says why. */
  readonly loaded: LoadedConfig | undefined;
  readonly failure: ToolcribError | undefined;
}

/** What a hub knows of the project config that was added to its own. */
export interface ProjectLayer {
  readonly file: string;
  /** One more level of rules, which can only narrow. */
  readonly rules: ToolRules;
  /** Roles that only the project has. */
  readonly roles: readonly string[];
  readonly reading: ProjectReading;
}

export interface ReadOptions {
  /** A config given in code. */
  readonly config?: ConfigInput | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** By path: what counts instead of what the config file holds. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  readonly home: string;
  /** Reads the imports; as they are if absent. */
  readonly read?: ReadText;
  readonly isProject?: boolean;
}

export async function readConfigFile(file: string, options: ReadOptions): Promise<LoadedConfig> {
  let text: string;
  try {
    text = options.texts?.get(file) ?? (await readFile(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    throw new ToolcribError("invalid_config", `${file}: the file cannot be read (${reason})`, { cause: error });
  }
  return readConfig(parseConfigText(file, text), file, options);
}

export async function readConfig(document: Document, file: string | null, options: ReadOptions): Promise<LoadedConfig> {
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
