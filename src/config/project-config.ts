/**
 * A project config, added to the home's: it adds servers, plugins and skills, and narrows rules. It replaces nothing of the
 * home's, and keys that would affect the home's servers and data are not read from it.
 */
import { resolve } from "node:path";
import { showHidden } from "../base/visible-text.ts";
import { type Config, type DetectorEntry, MAX_DETECTORS } from "../model/config.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Diagnostic, LoadedConfig, ProjectReading } from "../model/loaded-config.ts";
import { fixedValues, type Overrides, type ServerSpec } from "../model/server-spec.ts";
import { isPlainText, isCredentialName } from "../secrets/credential-names.ts";
import { MASK } from "../secrets/mask.ts";
import { withServerDefaults } from "./server-defaults.ts";
import { mergeLayers, withHubSandbox } from "./read-config.ts";
import { GUARD_ORDER, writtenGuard } from "./project-trust.ts";

type Keys = Readonly<Record<string, true | readonly string[]>>;

/** The keys that are read from a project config; true for a whole key. */
const USED_KEYS: Keys = {
  $schema: true,
  mcpServers: true,
  import: true,
  plugins: true,
  tools: ["allow", "deny", "ask", "rules"],
  limits: true,
  skills: ["dirs"],
  roles: true,
  guard: true,
  secrets: ["exec"],
  agent: ["model", "instructions"],
  sandbox: true,
};

export function mergeProject(base: LoadedConfig, reading: ProjectReading): LoadedConfig {
  const { file, value, loaded } = reading;
  if (loaded === undefined) return base;
  const warnings = [...base.warnings, ...loaded.warnings];
  const warn = (path: string, message: string): void => {
    warnings.push({ severity: "warning", code: "project_config", file, line: 0, column: 0, path, message });
  };
  const written = isJsonObject(value) ? value : {};
  const unused = unusedKeys(written);
  if (unused.length > 0) {
    warn("", `not read from a project config: ${unused.join(", ")}; --config uses the file alone, with all its keys`);
  }
  const known = new Set([...Object.keys(base.config.roles), ...base.servers.flatMap(({ roles = [] }) => roles)]);
  const brought = projectServers(base, reading, loaded, { known, warnings, warn });
  const roles = projectRoles(loaded, brought, known, warn);
  const { allow, deny, ask, rules } = loaded.config.tools;
  const at = (path: string): string => resolve(loaded.baseDir, path);
  const plugins = loaded.config.plugins.map(at);
  const present = new Set(base.config.plugins.map((path) => resolve(base.baseDir, path)));
  const config: Config = {
    ...base.config,
    plugins: [...base.config.plugins, ...plugins.filter((path) => !present.has(path))],
    skills: { ...base.config.skills, dirs: [...base.config.skills.dirs, ...loaded.config.skills.dirs.map(at)] },
    limits: smallerLimits(base.config.limits, written["limits"]),
    guard: withProjectDetectors(stricterGuard(base, written["guard"], warn), loaded, warn),
    roles: { ...base.config.roles, ...Object.fromEntries(roles) },
    secrets: { ...base.config.secrets, exec: { ...projectCommands(base, loaded, warn), ...base.config.secrets.exec } },
    agent: {
      ...base.config.agent,
      model: base.config.agent.model ?? projectModel(loaded, warn),
      instructions: base.config.agent.instructions ?? loaded.config.agent.instructions,
    },
  };
  return {
    ...base,
    config,
    servers: [...base.servers, ...brought],
    warnings,
    files: [...base.files, ...loaded.files.filter((path) => !base.files.includes(path))],
    project: { file, rules: { allow, deny, ask, rules }, roles: roles.map(([name]) => name), reading },
  };
}

function unusedKeys(written: JsonObject): string[] {
  return Object.entries(written).flatMap(([key, value]) => {
    const used = Object.hasOwn(USED_KEYS, key) ? USED_KEYS[key] : undefined;
    if (used === true || (used === undefined && !isKnownKey(key))) return [];
    if (used === undefined) return [key];
    return isJsonObject(value)
      ? Object.keys(value)
          .filter((inner) => !used.includes(inner))
          .map((inner) => `${key}.${inner}`)
      : [];
  });
}

/** Others are reported as unknown keys already. */
function isKnownKey(key: string): boolean {
  return [
    ...[
      "workspaceDir",
      "audit",
      "approvals",
      "env",
      "http",
      "hub",
      "sessions",
      "store",
      "containers",
      "cluster",
      "views",
    ],
  ].includes(key);
}

type Warn = (path: string, message: string) => void;

interface ProjectServerOptions {
  /** Roles that the home knows. */
  readonly known: ReadonlySet<string>;
  readonly warnings: Diagnostic[];
  readonly warn: Warn;
}

/** Those that the project adds, marked as its own. */
function projectServers(
  base: LoadedConfig,
  { file }: ProjectReading,
  loaded: LoadedConfig,
  { known, warnings, warn }: ProjectServerOptions,
): ServerSpec[] {
  // Rules of the home that name a tag must not apply because a project chose that tag.
  const hasTagRules = JSON.stringify([base.config.tools, base.config.roles, base.servers]).includes("tag:");
  const own = loaded.servers.flatMap((spec): ServerSpec[] => {
    const place = `mcpServers.${spec.id}`;
    if (spec.replaces !== undefined && spec.roles?.some((role) => known.has(role)) === true) {
      warn(place, "a role of your own config gets no server from a project; this server is left out");
      return [];
    }
    // What the project's own `env.inherit` and `start` say does not count.
    const { trust, tags, overrides, hubInherit: _hubInherit, hubStart: _hubStart, ...rest } = spec;
    if (trust === "trusted") warn(`${place}.trust`, 'a project cannot call its servers "trusted"; it is "untrusted"');
    const keepsTags = tags !== undefined && !hasTagRules;
    if (tags !== undefined && !keepsTags) warn(`${place}.tags`, "not used, because rules of your own config name tags");
    const shapes = overrides && {
      overrides: withoutAnnotations(overrides, (path, message) => warn(`${place}.${path}`, message)),
    };
    return [{ ...rest, ...shapes, trust: "untrusted", ...(keepsTags ? { tags } : {}), fromProject: true }];
  });
  const sandboxed = withHubSandbox({ file, servers: own }, base.config, warnings);
  const merged = mergeLayers([{ file: base.file ?? "library", servers: base.servers }, sandboxed], warnings);
  const added = merged.filter((spec) => spec.fromProject === true).map((spec) => withServerDefaults(spec, base));
  const room = base.config.limits.servers - base.servers.length;
  if (added.length <= room) return added;
  const late = added.slice(Math.max(0, room)).map(({ id }) => id);
  warn("mcpServers", `limits.servers is ${base.config.limits.servers}; left out: ${late.join(", ")}`);
  return added.slice(0, Math.max(0, room));
}

/** Hints that a config corrects are believed, and a project's servers are not trusted. */
function withoutAnnotations(overrides: Overrides, warn: Warn): Overrides {
  return Object.fromEntries(
    Object.entries(overrides).map(([tool, { annotations, ...rest }]) => {
      if (annotations !== undefined) warn(`overrides.${tool}`, "a project cannot correct annotations");
      return [tool, rest];
    }),
  );
}

/** Roles that only the project has see the project's servers and nothing else. */
function projectRoles(
  { config }: LoadedConfig,
  brought: readonly ServerSpec[],
  known: ReadonlySet<string>,
  warn: Warn,
): [string, Config["roles"][string]][] {
  const ids = brought.map(({ id }) => id);
  const names = new Set([...Object.keys(config.roles), ...brought.flatMap(({ roles = [] }) => roles)]);
  return [...names].flatMap((name): [string, Config["roles"][string]][] => {
    const role = config.roles[name];
    if (known.has(name)) {
      if (role !== undefined) warn(`roles.${name}`, "your own config has this role, and its definition counts");
      return [];
    }
    const own = ids.filter((id) => role?.servers === undefined || role.servers.includes(id) || id.endsWith(`@${name}`));
    return [[name, { servers: own, ...(role?.tools === undefined ? {} : { tools: role.tools }) }]];
  });
}

function smallerLimits(limits: Config["limits"], written: unknown): Config["limits"] {
  if (!isJsonObject(written)) return limits;
  // A limit that the base does not have is infinite.
  const { callsPerMinute = Infinity, ...others } = limits;
  const entries = Object.entries({ callsPerMinute, ...others }).map(([key, value]): [string, number] => {
    const wanted = written[key];
    // How many servers there may be was looked at for each config by itself.
    return [key, key !== "servers" && typeof wanted === "number" ? Math.min(value, wanted) : value];
  });
  // The same keys as before, with numbers as before.
  return Object.fromEntries(entries.filter(([, value]) => value !== Infinity)) as Config["limits"];
}

function stricterGuard(base: LoadedConfig, entry: unknown, warn: Warn): Config["guard"] {
  const { guard } = base.config;
  const written = writtenGuard(entry);
  const before: Readonly<Record<string, unknown>> = { ...guard, pins: guard.pins ?? "warn" };
  const stricter = Object.entries(GUARD_ORDER).flatMap(([key, order]) => {
    const wanted = String(written[key]);
    const isStricter = order.indexOf(wanted) > order.indexOf(String(before[key]));
    if (!isStricter && order.includes(wanted) && wanted !== before[key]) {
      warn(`guard.${key}`, `your own config is stricter (${String(before[key])}), which counts`);
    }
    return isStricter ? [[key, wanted] as const] : [];
  });
  const classes = isJsonObject(written["classes"]) ? written["classes"] : {};
  const added = Object.entries(classes).map(([name, patterns]) => {
    const texts = Array.isArray(patterns) ? patterns.map(String) : [];
    const isException = (text: string): boolean => text.startsWith("!");
    if (texts.some(isException)) warn(`guard.classes.${name}`, "a project cannot take a tool out of a class");
    const own = guard.classes[name as keyof typeof guard.classes] ?? [];
    return [name, [...own, ...texts.filter((text) => !isException(text))]] as const;
  });
  return {
    ...guard,
    ...Object.fromEntries(stricter),
    classes: { ...guard.classes, ...Object.fromEntries(added) },
  };
}

/** A project's detectors read what the home's do, and replace none of them. */
function withProjectDetectors(guard: Config["guard"], { config, baseDir }: LoadedConfig, warn: Warn): Config["guard"] {
  const at = (path: string): string => resolve(baseDir, path);
  // One of the type onnx was refused when the project was read.
  const added = config.guard.detectors
    .filter(({ type }) => type !== "onnx")
    .map((entry): DetectorEntry => (entry.type === "module" ? { ...entry, path: at(entry.path) } : entry));
  const room = MAX_DETECTORS - guard.detectors.length;
  if (added.length > room) warn("guard.detectors", `more than ${MAX_DETECTORS} in all; the last ones are left out`);
  return { ...guard, detectors: [...guard.detectors, ...added.slice(0, Math.max(0, room))] };
}

/** A reference of the home's own must not begin to run a program of the project. */
function projectCommands(base: LoadedConfig, { config }: LoadedConfig, warn: Warn): Config["secrets"]["exec"] {
  const referring = JSON.stringify([base.config, base.servers]);
  return Object.fromEntries(
    Object.entries(config.secrets.exec).filter(([name]) => {
      const isHomes = Object.hasOwn(base.config.secrets.exec, name) || referring.includes(`secret://exec/${name}`);
      if (isHomes) warn(`secrets.exec.${name}`, "your own config uses this name; the project's program is not used");
      return !isHomes;
    }),
  );
}

/** An endpoint would get all that is said, and what the home's tools return. */
function projectModel({ config }: LoadedConfig, warn: Warn): string | undefined {
  const { model } = config.agent;
  if (typeof model !== "object") return model;
  warn("agent.model", "a project cannot name an endpoint for the model; name one in your own config");
  return undefined;
}

/** Of one command line, in characters; the rest is counted. */
const MAX_SHOWN_LENGTH = 2000;

/** Everything that a project config would start and reach, for the person who is asked about it: one line each, nothing hidden. */
export function describeProject({ loaded, failure }: ProjectReading): string[] {
  if (loaded === undefined) return [`cannot be used: ${visibleLine(failure?.message ?? "")}`];
  const { config } = loaded;
  const exec = Object.entries(config.secrets.exec);
  const from = (spec: ServerSpec): string => (spec.origin.file === loaded.file ? "" : ` (from ${spec.origin.file})`);
  return [
    ...loaded.servers.map((spec) => visibleLine(`server ${spec.id}: ${describeStart(spec)}${from(spec)}`)),
    ...config.plugins.map((path) => visibleLine(`plugin (runs inside Toolcrib): ${resolve(loaded.baseDir, path)}`)),
    ...config.guard.detectors.map((entry) => visibleLine(describeDetector(entry, loaded.baseDir))),
    ...exec.map(([name, command]) => visibleLine(`program for secrets, ${name}: ${commandLine(command)}`)),
    ...config.skills.dirs.map((dir) => visibleLine(`skills: ${resolve(loaded.baseDir, dir)}`)),
    ...(config.agent.instructions === undefined ? [] : [visibleLine(`for the agent: ${config.agent.instructions}`)]),
  ];
}

function describeDetector(entry: DetectorEntry, baseDir: string): string {
  switch (entry.type) {
    case "http":
      return `detector (gets the texts of all servers): ${entry.url}${entry.token === undefined ? "" : ` with ${entry.token}`}`;
    case "module":
      return `detector (runs inside Toolcrib): ${resolve(baseDir, entry.path)}`;
    case "onnx":
      return `detector (runs inside Toolcrib): ${entry.runtime} with ${resolve(baseDir, entry.model)}`;
  }
}

function describeStart(spec: ServerSpec): string {
  const { command, args = [], url, env = {}, headers = {}, auth = {}, cwd, sandbox, allowHttp, enabled } = spec;
  const { inherit = [], problem } = spec;
  const hasNone = command === undefined && url === undefined && problem !== undefined;
  const target = url ?? (command === undefined ? `image ${JSON.stringify(sandbox)}` : commandLine([command, ...args]));
  const texts = Object.entries(auth).flatMap(([key, value]) =>
    typeof value === "string" ? [[`auth.${key}`, value] as const] : [],
  );
  const fixed = fixedValues(spec.overrides).map(({ path, value }): [string, string] => [
    `${path[0]}.${path[2]}`,
    typeof value === "string" ? value : (JSON.stringify(value) ?? ""),
  ]);
  const values = [...Object.entries(env), ...Object.entries(headers), ...texts, ...fixed].map(([name, value]) => {
    const isSecret = (isCredentialName(name) || name === "auth.key") && isPlainText(value);
    return `${name}=${isSecret ? MASK : quoted(value)}`;
  });
  return [
    ...(hasNone ? [] : [target]),
    ...(cwd === undefined ? [] : [`in ${quoted(cwd)}`]),
    ...(values.length === 0 ? [] : [`with ${values.join(" ")}`]),
    ...(inherit.length === 0 ? [] : [`and from your environment ${inherit.map(quoted).join(" ")}`]),
    ...(sandbox === undefined || command === undefined ? [] : [`sandbox ${JSON.stringify(sandbox)}`]),
    ...(allowHttp === true ? ["(plain http)"] : []),
    ...(enabled ? [] : ["(disabled)"]),
    ...(problem === undefined ? [] : ["(not started: its entry has an error)"]),
  ].join(" ");
}

function commandLine(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word);
}

function visibleLine(text: string): string {
  const whole = showHidden(text.replaceAll(/\s+/g, " "));
  return whole.length > MAX_SHOWN_LENGTH
    ? `${whole.slice(0, MAX_SHOWN_LENGTH)} … and ${whole.length - MAX_SHOWN_LENGTH} more characters`
    : whole;
}
