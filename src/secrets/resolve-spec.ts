/** Turns a ServerSpec into what a connection needs at the moment it opens: every reference replaced by its value. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { ToolcribError } from "../model/errors.ts";
import type { ServerAuth, ServerSpec } from "../model/server-spec.ts";
import { isCredentialName, isPlainText } from "./credential-names.ts";
import { secretParts } from "./redactor.ts";
import type { Secrets } from "./secrets.ts";

export interface ResolvedSpec {
  readonly command?: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  /** Absolute. */
  readonly cwd?: string;
  readonly url?: string;
  /** With a bearer token or an API key of `auth` applied. */
  readonly headers: Record<string, string>;
  /** `auth` with its references replaced. */
  readonly auth?: ServerAuth;
  /** Warnings about how a secret is kept. */
  readonly warnings: readonly string[];
}

interface ResolveOptions {
  /** Ends the look-ups with the connection. */
  readonly signal?: AbortSignal;
  /** Whose connection it is, for `secret://user/…`. */
  readonly user?: string;
  /** Variables that come before those of the hub. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Common variables for paths that are not secret; masking them would make every message unreadable. */
const HARMLESS_VARIABLES = new Set(
  `APPDATA HOME HOMEDRIVE HOMEPATH HOST HOSTNAME LANG LOCALAPPDATA LOGNAME NODE_ENV PATH PORT PWD SHELL TEMP TERM
  TMP TMPDIR TZ USER USERNAME USERPROFILE XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
  XDG_STATE_HOME`.split(/\s+/),
);

/** How many look-ups had begun when a spec was resolved last: the next connect reads what it used again. */
const lastMark = new WeakMap<Secrets, WeakMap<ServerSpec, number>>();

/**
 * Looks everything up at once. Rejects with one error that names every reference that failed and its place, never a
 * value. What must be masked is with the redactor of `secrets` when it resolves.
 */
export async function resolveSpec(
  spec: ServerSpec,
  secrets: Secrets,
  options: ResolveOptions = {},
): Promise<ResolvedSpec> {
  const warnings = new Set<string>();
  const newerThan = marksOf(secrets).get(spec);
  const lookUp = { ...options, baseDir: spec.baseDir, newerThan, warn: (text: string) => void warnings.add(text) };
  const strings = specStrings(spec);
  const pending = Promise.allSettled(strings.map((each) => secrets.resolve(each.text, lookUp)));
  marksOf(secrets).set(spec, secrets.mark);

  const values = new Map<string, string>();
  const failures: { where: string; error: ToolcribError }[] = [];
  for (const [index, settled] of (await pending).entries()) {
    const string = strings[index];
    if (string === undefined) continue;
    if (settled.status === "fulfilled") {
      const { value, looked } = settled.value;
      values.set(string.where, value);
      for (const { reference, value: found } of looked) {
        if (reference.kind === "variable" && isWorthMasking(string, reference.name, found)) secrets.redactor.add(found);
      }
      conceal(string, value, secrets);
    } else if (settled.reason instanceof ToolcribError) {
      failures.push({ where: string.where, error: settled.reason });
    } else {
      throw settled.reason;
    }
  }
  if (failures.length > 0) throw joinErrors(spec.id, failures);
  return assemble(spec, values, secrets, [...warnings]);
}

function marksOf(secrets: Secrets): WeakMap<ServerSpec, number> {
  let marks = lastMark.get(secrets);
  if (marks === undefined) lastMark.set(secrets, (marks = new WeakMap()));
  return marks;
}

function isWorthMasking({ role }: SpecString, variable: string, value: string): boolean {
  if (isCredentialName(variable) || role === "credential") return true;
  return role === "text" && !HARMLESS_VARIABLES.has(variable) && !isExistingPath(value);
}

/** A folder or file of this machine: masking it would blot out every path below it and protect nothing. */
function isExistingPath(value: string): boolean {
  return isAbsolute(value) && existsSync(value);
}

/** A value may also be secret because of its place. */
function conceal({ role }: SpecString, value: string, { redactor }: Secrets): void {
  if (role !== "credential" || !isPlainText(value)) return;
  redactor.addCredential(value);
  // In `Bearer abc` the token alone is what a server may print.
  const [, token] = /^(?:Bearer|Basic|Token)\s+(\S.*)$/i.exec(value) ?? [];
  if (token !== undefined) redactor.addCredential(token);
}

function assemble(
  spec: ServerSpec,
  values: ReadonlyMap<string, string>,
  secrets: Secrets,
  warnings: readonly string[],
): ResolvedSpec {
  const text = (where: string): string => values.get(where) ?? "";
  const record = (map: "env" | "headers"): Record<string, string> =>
    Object.fromEntries(Object.keys(spec[map] ?? {}).map((key) => [key, text(`${map}.${key}`)]));

  const args = (spec.args ?? []).map((_, index) => text(`args[${index}]`));
  for (const value of credentialArguments(args)) secrets.redactor.addCredential(value);
  const url = spec.url === undefined ? undefined : text("url");
  // Not the address itself, which messages name the server by.
  for (const { value } of secretParts(url ?? "").slice(1)) secrets.redactor.addCredential(value);
  const headers = record("headers");
  const auth = spec.auth === undefined ? undefined : resolvedAuth(spec.auth, text);
  if (auth !== undefined) applyAuth(auth, headers);
  return {
    command: spec.command === undefined ? undefined : text("command"),
    args,
    env: record("env"),
    cwd: spec.cwd === undefined ? undefined : absolutePath(text("cwd"), spec.baseDir, secrets.env),
    url,
    headers,
    auth,
    warnings,
  };
}

function resolvedAuth(auth: ServerAuth, text: (where: string) => string): ServerAuth {
  const entries = Object.entries(auth).map(([key, value]) => {
    const isReferable = typeof value === "string" && key !== "type" && key !== "header";
    return [key, isReferable ? text(`auth.${key}`) : value];
  });
  // The same keys with strings for strings: still the same kind of auth.
  return Object.fromEntries(entries) as ServerAuth;
}

/** The kinds that need no exchange with an authorization server. */
function applyAuth(auth: ServerAuth, headers: Record<string, string>): void {
  if (auth.type === "bearer") setHeader(headers, "Authorization", `Bearer ${auth.token}`);
  if (auth.type === "api-key") setHeader(headers, auth.header, auth.key);
}

/** Header names have no case: `auth` replaces a header that is written differently. */
function setHeader(headers: Record<string, string>, name: string, value: string): void {
  for (const other of Object.keys(headers)) if (other.toLowerCase() === name.toLowerCase()) delete headers[other];
  headers[name] = value;
}

/** `--token=abc` and `--token abc`. */
function credentialArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (option === undefined || !isCredentialName(option)) return [];
    const given = value ?? args[index + 1] ?? "";
    return given.startsWith("-") || !isPlainText(given) ? [] : [given];
  });
}

/** A path of an entry: relative to its file, `~` is the user's home. */
export function absolutePath(path: string, baseDir: string, env: NodeJS.ProcessEnv): string {
  if (path === "~" || path.startsWith("~/")) return join(env["HOME"] ?? homedir(), path.slice(1));
  return isAbsolute(path) ? path : resolve(baseDir, path);
}

/** One message for all. Another attempt makes sense only if each of them may pass. */
function joinErrors(id: string, failures: readonly { where: string; error: ToolcribError }[]): ToolcribError {
  const cancelled = failures.find(({ error }) => error.code === "cancelled");
  if (cancelled !== undefined) return cancelled.error;
  const first = (failures.find(({ error }) => error.code === "invalid_config") ?? failures[0])?.error;
  const list = failures.map(({ where, error }) => `${where}: ${error.message}`).join("; ");
  return new ToolcribError(first?.code ?? "invalid_config", `Server ${JSON.stringify(id)}: ${list}`, {
    hint: first?.hint,
    details: { references: failures.map(({ error }) => error.details?.["reference"]), sent: false },
    cause: first,
  });
}

interface SpecString {
  /** As a person would point at it: `env.TOKEN`, `args[2]`. */
  readonly where: string;
  readonly text: string;
  /**
   * `place`: a program or a folder, where a variable is not secret unless its name says so. `credential`: secret as a
   * whole, whatever it contains.
   */
  readonly role: "place" | "text" | "credential";
}

/** The strings of a server that may contain references. */
export function specStrings(spec: ServerSpec): SpecString[] {
  const strings: SpecString[] = [];
  const add = (where: string, text: string | undefined, role: SpecString["role"]): void => {
    if (text !== undefined) strings.push({ where, text, role });
  };
  add("command", spec.command, "place");
  for (const [index, arg] of (spec.args ?? []).entries()) add(`args[${index}]`, arg, "text");
  add("cwd", spec.cwd, "place");
  add("url", spec.url, "text");
  for (const map of ["env", "headers"] as const) {
    for (const [key, text] of Object.entries(spec[map] ?? {})) {
      add(`${map}.${key}`, text, isCredentialName(key) ? "credential" : "text");
    }
  }
  for (const [key, value] of Object.entries(spec.auth ?? {})) {
    if (typeof value !== "string" || key === "type" || key === "header") continue;
    const isSecret = isCredentialName(key) || key === "key";
    add(`auth.${key}`, value, isSecret ? "credential" : "text");
  }
  return strings;
}
