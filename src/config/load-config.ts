/** Loads a config of any dialect, with its imports, into one LoadedConfig, or says everything that is wrong with it. */
import { readFile } from "node:fs/promises";
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
import { withCage, withImportedCage, withSkillFolder } from "./effective-cage.ts";
import { findConfig, toolcribHome, userHome } from "./find-config.ts";
import { httpWarnings } from "./http-rules.ts";
import { readImports, type Layer } from "./imports.ts";
import { unknownKey } from "./inspect.ts";
import { configNode } from "./json-schema.ts";
import { limitsFromEnv } from "./limits-env.ts";
import { parseConfigText } from "./read-document.ts";
import { roleServers } from "./role-servers.ts";
import { serverProblems, serverWarnings } from "./server-rules.ts";
import { storeWarnings } from "./store-rules.ts";
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
}

export interface LoadedConfig {
  /** Defaults filled in. `mcpServers` holds the servers of the file itself; `servers` holds all. */
  readonly config: Config;
  /** null for a config given in code, and if no file was found. */
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
}

/** Rejects with `invalid_config` that lists every problem, or `not_found` for a named file that is not there. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd } = options;
  const home = options.home ?? toolcribHome(env);
  const { document, file } = await readPrimary(options, home);
  const baseDir = file === null ? resolve(cwd) : dirname(file);
  const primary = readOwnLayer(document, baseDir, userHome(env));
  const fromEnv = limitsFromEnv(env);
  const problems = [...document.errors, ...primary.problems, ...fromEnv.problems];
  const warnings = [...document.warnings, ...primary.warnings, ...fromEnv.warnings];

  const config: Config = { ...primary.config, limits: { ...primary.config.limits, ...fromEnv.limits } };
  const imports = await readImports({
    document,
    file,
    baseDir,
    home: options.config === undefined ? home : null,
    list: config.import,
    userHome: userHome(env),
    env,
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

async function readPrimary(options: LoadOptions, home: string): Promise<{ document: Document; file: string | null }> {
  const { config, env, cwd } = options;
  if (config !== undefined) return { document: Document.ofValue("library", config), file: null };
  const file = findConfig({ config: options.file, env, cwd, home });
  if (file === null) return { document: Document.ofValue("library", {}), file };
  let text: string;
  try {
    text = options.texts?.get(file) ?? (await readFile(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    throw new ToolcribError("invalid_config", `${file}: the file cannot be read (${reason})`, { cause: error });
  }
  return { document: parseConfigText(file, text), file };
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

/** The layer with the cages that this config gives it. An image that is then nowhere to be run is left out. */
function withoutSay({ file, servers }: Layer, config: Config, warnings: Diagnostic[]): Layer {
  const specs = servers.flatMap((given) => {
    const { spec, ignored } = withImportedCage(given, { config });
    if (!ignored) return [spec];
    const isLost = spec.command === undefined && spec.url === undefined;
    const message = `sandbox of an imported server is not used, because this config has one for all${
      isLost ? "; without it this server cannot be started and is left out" : ""
    }`;
    const path = `${given.id}.sandbox`;
    warnings.push({ severity: "warning", code: "not_read", file, line: 0, column: 0, path, message });
    return isLost ? [] : [spec];
  });
  return { file, servers: specs };
}

/** Earlier layers win. */
function mergeLayers(layers: readonly Layer[], warnings: Diagnostic[]): ServerSpec[] {
  const byId = new Map<string, ServerSpec>();
  for (const { file, servers } of layers) {
    for (const spec of servers) {
      const earlier = byId.get(spec.id);
      if (earlier === undefined) {
        byId.set(spec.id, spec);
        continue;
      }
      const message = `the server ${JSON.stringify(spec.id)} is also in ${earlier.origin.file}, which counts`;
      warnings.push(
        asWarning({ severity: "warning", code: "duplicate_id", file, line: 0, column: 0, path: spec.id, message }),
      );
    }
  }
  return [...byId.values()];
}
