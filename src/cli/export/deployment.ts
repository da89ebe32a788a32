/** A deployment before it is written for a platform, and the variables that replace its secrets. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isPlainText, isCredentialName } from "../../secrets/credential-names.ts";
import { maskTokens } from "../../secrets/mask.ts";
import { findPlaintextCredentials, replaceCredentials } from "../../secrets/plaintext-credentials.ts";
import { parseReferences, type Part, type Reference, writeReference } from "../../secrets/secret-references.ts";

export interface Deployment {
  /** Image of the gateway. */
  readonly image: string;
  /** The port that it listens on. */
  readonly port: number;
  readonly replicas: number;
  /** Whether its nodes are a cluster. */
  readonly isCluster: boolean;
  /** Whether its home must survive a restart. */
  readonly keepsHome: boolean;
  readonly stopSeconds: number;
  /** Its config, without secrets and without paths of this machine. */
  readonly config: JsonObject;
  /** The variables that the config refers to. */
  readonly variables: readonly Variable[];
  /** Servers that run beside the gateway and are reached over HTTP. */
  readonly servers: readonly DeployedServer[];
}

export interface Variable {
  readonly name: string;
  /** Required variables are treated as secrets. */
  readonly needed: boolean;
}

export interface DeployedServer {
  readonly id: string;
  /** A unique DNS label. */
  readonly name: string;
  readonly image: string;
  /** Undefined for the image's own. */
  readonly entrypoint: string | undefined;
  readonly args: readonly EnvText[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, EnvText>>;
  readonly port: number;
  readonly needsNetwork: boolean;
  /** Folders of this machine. */
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly memory: number | undefined;
  readonly cpus: number | undefined;
  readonly pids: number | undefined;
}

/** A text with variables in it. */
export type EnvText = readonly (string | Variable)[];

/** One file of the result. */
export interface DeploymentFile {
  readonly path: string;
  readonly text: string;
}

export const GATEWAY = "toolcrib";
/** User and group `node` of the image. */
export const GATEWAY_USER = 1000;
/** The user `nobody`, for other images. */
export const SERVER_USER = 65_534;
export const HOME = "/data";
export const CONFIG_DIR = "/config";
export const CONFIG_FILE = "toolcrib.json";
export const SERVE = ["toolcrib", "serve", "--config", `${CONFIG_DIR}/${CONFIG_FILE}`, "--log-format", "json"] as const;

export function variablesOf({ env, args }: DeployedServer): Variable[] {
  return [...Object.values(env), ...args].flatMap((text) => text.filter((part) => typeof part === "object"));
}

/** Every process has these, also in a container. */
const STANDARD = new Set(["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "PWD", "HOSTNAME"]);

function variableOf(reference: Reference): Variable | undefined {
  if (reference.kind === "secret") {
    return reference.provider === "env" ? { name: reference.path, needed: true } : undefined;
  }
  if (STANDARD.has(reference.name)) return undefined;
  return { name: reference.name, needed: reference.fallback === undefined };
}

/** Unique and sorted by name. A variable that is needed anywhere is needed. */
export function variablesIn(value: unknown): Variable[] {
  const found = new Map<string, Variable>();
  for (const text of textsOf(value)) {
    for (const part of partsOf(text)) {
      const variable = typeof part === "string" ? undefined : variableOf(part);
      if (variable !== undefined && found.get(variable.name)?.needed !== true) found.set(variable.name, variable);
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A copy in which `write` replaces references; undefined keeps one. */
export function rewriteReferences(value: JsonObject, write: (variable: Variable) => string | undefined): JsonObject {
  const rewrite = (item: unknown): unknown => {
    if (typeof item === "string") return rewritten(item, write);
    if (Array.isArray(item)) return item.map(rewrite);
    if (!isJsonObject(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, each]) => [key, rewrite(each)]));
  };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rewrite(each)]));
}

function rewritten(text: string, write: (variable: Variable) => string | undefined): string {
  const parts = partsOf(text);
  if (parts.every((part) => typeof part === "string")) return text;
  return parts
    .map((part) => {
      // Parsing removed the escapes.
      if (typeof part === "string") return part.replaceAll("${", "$${");
      const variable = variableOf(part);
      return (variable === undefined ? undefined : write(variable)) ?? part.text;
    })
    .join("");
}

/** For a program that reads its own environment. `lost` supplies a variable for references that have none. */
export function envText(text: string, lost: (reference: Reference) => Variable): EnvText {
  return partsOf(text).map((part) => {
    if (typeof part === "string") return part;
    if (part.kind === "variable" && part.fallback !== undefined) return part.fallback;
    return variableOf(part) ?? lost(part);
  });
}

/** Providers of references, other than the environment. */
export function providersIn(value: unknown): Set<string> {
  const providers = textsOf(value).flatMap((text) =>
    partsOf(text).flatMap((part) => (typeof part !== "string" && part.kind === "secret" ? [part.provider] : [])),
  );
  return new Set(providers.filter((provider) => provider !== "env"));
}

export function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return isJsonObject(value) ? Object.values(value).flatMap(textsOf) : [];
}

/** A malformed reference is plain text. */
function partsOf(text: string): Part[] {
  try {
    return parseReferences(text);
  } catch {
    return [text];
  }
}

export interface SecretReplacement {
  readonly names: VariableNames;
  readonly warn: (message: string) => void;
}

/** For a server's entry. Throws `invalid_config` for secrets that no reference can replace. */
export function replaceServerSecrets(id: string, entry: JsonObject, { names, warn }: SecretReplacement): JsonObject {
  const found = findPlaintextCredentials(entry);
  const fixed = found.find(({ replaceable }) => !replaceable);
  if (fixed !== undefined) {
    throw new ToolcribError("invalid_config", `${fixed.where} of the server "${id}" contains a secret in plain text.`, {
      hint: "Replace it with a reference such as ${NAME} or secret://env/NAME, and export again.",
    });
  }
  return replaceCredentials(entry, found, ({ path, where }) => {
    const [first, ...rest] = path;
    const name = names.next([id, ...(first === "env" ? rest : path)]);
    warn(`${where} of the server "${id}" contains a secret in plain text. It becomes the variable ${name}.`);
    return writeReference("env", name);
  });
}

/** Names of variables and headers whose values are exported as plain text, because they do not look like secrets. */
export function plainTextNames({ env, headers }: JsonObject): string[] {
  return [env, headers].flatMap((texts) =>
    Object.entries(isJsonObject(texts) ? texts : {}).flatMap(([name, text]) =>
      typeof text === "string" && isPlainText(text) ? [name] : [],
    ),
  );
}

/** Config keys outside of servers whose values are always secret. */
const SECRET_KEYS = new Set(["token", "key", "apiKey", "clientSecret", "password"]);

/** For everything but servers. */
export function replaceConfigSecrets(config: JsonObject, { names, warn }: SecretReplacement): JsonObject {
  const clean = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => clean(item, [...path, index]));
    if (isJsonObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item, [...path, key])]));
    }
    if (typeof value !== "string" || !isSecret(path.at(-1), value)) return value;
    const name = names.next(["toolcrib", ...path]);
    warn(`${path.join(".")} contains a secret in plain text. It becomes the variable ${name}.`);
    return writeReference("env", name);
  };
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, clean(value, [key])]));
}

function isSecret(key: string | number | undefined, value: string): boolean {
  const named = typeof key === "string" && (SECRET_KEYS.has(key) || isCredentialName(key));
  // `cluster.credentials` may also be the path of a file.
  if (named && isPlainText(value) && (key !== "credentials" || value.includes("-----BEGIN"))) return true;
  return partsOf(value).some((part) => typeof part === "string" && maskTokens(part) !== part);
}

/** Unique names for the variables that replace secrets. */
export class VariableNames {
  readonly #taken: Set<string>;

  /** @param taken Names that are in use. */
  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken);
  }

  /** @param words The place of the secret. */
  next(words: readonly (string | number)[]): string {
    const plain = words
      .join("_")
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, "_")
      .replace(/^_+|_+$/g, "");
    const first = /^\d/.test(plain) ? `_${plain}` : plain;
    let name = first;
    for (let count = 2; this.#taken.has(name); count++) name = `${first}_${count}`;
    this.#taken.add(name);
    return name;
  }
}
