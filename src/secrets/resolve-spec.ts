/** Turns a ServerSpec into what a connection needs at the moment it opens: every reference replaced by its value. */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { ToolcribError } from "../model/errors.ts";
import type { ServerAuth, ServerSpec } from "../model/server-spec.ts";
import { isPlainText, looksLikeCredential } from "./looks-like-secret.ts";
import { resolveReferences, type Reference } from "./references.ts";

export interface ResolvedSpec {
  readonly command?: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  /** Absolute. */
  readonly cwd?: string;
  readonly url?: string;
  /** With `auth` applied. */
  readonly headers: Record<string, string>;
  /** Values to mask wherever something of this server is shown. */
  readonly secrets: string[];
}

/** Variables that everybody uses in paths and that hold no secret; masking them would make every message unreadable. */
const HARMLESS = new Set([
  "APPDATA", "HOME", "HOMEDRIVE", "HOMEPATH", "HOST", "HOSTNAME", "LANG", "LOCALAPPDATA", "LOGNAME", "NODE_ENV", "PATH",
  "PORT", "PWD", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "USERNAME", "USERPROFILE",
  "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
]);

/**
 * Rejects with one `invalid_config` that names every reference that failed and where it stands, never a value.
 * Asynchronous because secret providers other than the environment are.
 */
export async function resolveSpec(spec: ServerSpec, env: NodeJS.ProcessEnv): Promise<ResolvedSpec> {
  const resolution = new Resolution(env);
  const command = spec.command === undefined ? undefined : await resolution.path("command", spec.command);
  const args: string[] = [];
  for (const [index, arg] of (spec.args ?? []).entries()) args.push(await resolution.text(`args[${index}]`, arg));
  const childEnv = await resolution.record("env", spec.env ?? {});
  const cwd = spec.cwd === undefined ? undefined : await resolution.path("cwd", spec.cwd);
  const url = spec.url === undefined ? undefined : await resolution.text("url", spec.url);
  const headers = await resolution.record("headers", spec.headers ?? {});
  if (spec.auth !== undefined) await applyAuth(spec.auth, headers, resolution);
  resolution.throwFailures(spec.id);
  return {
    ...(command === undefined ? {} : { command }),
    args,
    env: childEnv,
    ...(cwd === undefined ? {} : { cwd: absolutePath(cwd, spec.baseDir, env) }),
    ...(url === undefined ? {} : { url }),
    headers,
    secrets: [...resolution.secrets],
  };
}

async function applyAuth(auth: ServerAuth, headers: Record<string, string>, resolution: Resolution): Promise<void> {
  switch (auth.type) {
    case "bearer":
      setHeader(headers, "Authorization", `Bearer ${await resolution.credential("auth.token", auth.token)}`);
      return;
    case "api-key":
      setHeader(headers, auth.header, await resolution.credential("auth.key", auth.key));
      return;
    case "oauth":
    case "client-credentials":
      throw new ToolcribError("invalid_config", `auth.type "${auth.type}" is not built in this version`);
  }
}

/** Header names have no case: `auth` replaces a header that is written differently. */
function setHeader(headers: Record<string, string>, name: string, value: string): void {
  for (const other of Object.keys(headers)) if (other.toLowerCase() === name.toLowerCase()) delete headers[other];
  headers[name] = value;
}

function absolutePath(path: string, baseDir: string, env: NodeJS.ProcessEnv): string {
  if (path === "~" || path.startsWith("~/")) return join(env["HOME"] ?? homedir(), path.slice(1));
  return isAbsolute(path) ? path : resolve(baseDir, path);
}

/** Collects values, secrets and failures while a spec is walked, so that one message can name all failures. */
class Resolution {
  readonly secrets = new Set<string>();
  readonly #env: NodeJS.ProcessEnv;
  readonly #failures: { where: string; error: ToolcribError }[] = [];

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  /** For a program or a folder: a variable there is a place, unless its name says otherwise. */
  async path(where: string, text: string): Promise<string> {
    return this.#resolve(where, text, (reference) => reference.kind === "secret" || looksLikeCredential(reference.name));
  }

  async text(where: string, text: string): Promise<string> {
    return this.#resolve(where, text, (reference) => reference.kind === "secret" || !HARMLESS.has(reference.name));
  }

  async credential(where: string, text: string): Promise<string> {
    const value = await this.#resolve(where, text, () => true);
    if (isPlainText(value)) this.secrets.add(value);
    return value;
  }

  async record(where: string, record: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const resolved: Record<string, string> = {};
    for (const [key, text] of Object.entries(record)) {
      if (!looksLikeCredential(key)) {
        resolved[key] = await this.text(`${where}.${key}`, text);
        continue;
      }
      const value = await this.credential(`${where}.${key}`, text);
      // In `Bearer abc` the token alone is what a server may print.
      const [, token] = /^(?:Bearer|Basic|Token)\s+(\S.*)$/i.exec(value) ?? [];
      if (token !== undefined) this.secrets.add(token);
      resolved[key] = value;
    }
    return resolved;
  }

  throwFailures(id: string): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    const list = this.#failures.map(({ where, error }) => `${where}: ${error.message}`).join("; ");
    throw new ToolcribError("invalid_config", `Server ${JSON.stringify(id)}: ${list}`, {
      hint: first.error.hint,
      details: { references: this.#failures.map(({ error }) => error.details?.["reference"]) },
      cause: first.error,
    });
  }

  async #resolve(where: string, text: string, isSecret: (reference: Reference) => boolean): Promise<string> {
    try {
      const { value, looked } = await resolveReferences(text, this.#env);
      for (const found of looked) if (isSecret(found.reference)) this.secrets.add(found.value);
      return value;
    } catch (error) {
      if (!(error instanceof ToolcribError)) throw error;
      this.#failures.push({ where, error });
      return "";
    }
  }
}
