/** A secret provider: one place for secrets behind one function, and the helpers that providers share. */
import type { Clock } from "../base/clock.ts";
import { isLoopback } from "../base/network-address.ts";
import { runProgram } from "../base/programs.ts";
import { parseJsonObject } from "../model/json.ts";
import type { SecretReference } from "./secret-references.ts";

export interface SecretProvider {
  readonly name: string;
  /** Whether values are kept for a while. Not where reading is cheap. */
  readonly cached: boolean;
  /** Returns the value, never an empty one, or throws SecretFailure. Must end soon after `signal` aborts. */
  resolve(secret: SecretReference, context: ProviderContext): Promise<string>;
}

export interface ProviderContext {
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  /** Toolcrib's own folder. */
  readonly home: string;
  /** The folder that relative paths start from. */
  readonly baseDir: string;
  /** The user whose connection it is, if it belongs to one. */
  readonly user: string | undefined;
  /** The programs that `secrets.exec` of the config names. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
  /** Takes a credential of the provider itself, such as a Vault token, so that it is masked everywhere. */
  readonly conceal: (value: string) => void;
  /** Takes warnings about how a secret is kept. */
  readonly warn: (message: string) => void;
}

interface FailureOptions {
  readonly hint?: string;
  /** Whether waiting can help: a server that is down, not a secret that is not there. */
  readonly passing?: boolean;
  readonly cause?: unknown;
}

/** Why a secret was not found. The message follows the reference in a sentence and never contains a value. */
export class SecretFailure extends Error {
  override readonly name = "SecretFailure";
  readonly hint: string | undefined;
  readonly passing: boolean;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    this.hint = options.hint;
    this.passing = options.passing ?? false;
  }
}

/** The largest secret. Keys and certificates are far below it, and a wrong path to a big file is noticed. */
export const MAX_SECRET_BYTES = 64 * 1024;

/** Files and commands end their output with a line break that is not part of the secret. */
export function withoutFinalNewline(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end--;
  return text.slice(0, end);
}

/** Bytes that are not UTF-8 would reach a server as something else. */
export function decodeSecret(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new SecretFailure("is not UTF-8 text", { cause });
  }
}

/** One field of a secret that has several; without a name the only one. */
export function fieldOf(fields: Readonly<Record<string, unknown>>, name: string | undefined): string {
  const names = Object.keys(fields);
  const key = name ?? (names.length === 1 ? names[0] : undefined);
  if (key === undefined) throw new SecretFailure(`has ${names.length} fields and none was chosen`, fieldHint(names));
  if (!Object.hasOwn(fields, key)) throw new SecretFailure(`has no field ${JSON.stringify(key)}`, fieldHint(names));
  const value = fields[key];
  if (value === null || value === undefined) throw new SecretFailure("is empty");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A key of a secret that is a JSON object, as AWS keeps several values in one. */
export function jsonField(text: string, name: string): string {
  const parsed = parseJsonObject(text);
  if (parsed === undefined)
    throw new SecretFailure(`has no keys: it is not a JSON object`, { hint: `Leave out #${name}.` });
  return fieldOf(parsed, name);
}

/** Names of fields are not secrets; they help with a mistyped one. */
function fieldHint(names: readonly string[]): { hint: string } {
  const shown = names.slice(0, 20).join(", ") || "none";
  return { hint: `Its fields: ${shown}. Choose one with #field.` };
}

interface CommandOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly cwd?: string;
  readonly input?: string;
  /** The failure if there is no such program. */
  readonly missing: { readonly message?: string; readonly hint: string | undefined };
}

interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  /** The first line of stderr, for a message. */
  readonly complaint: string;
  /** The complaint, or the exit code if there is none. */
  readonly reason: string;
}

const MAX_COMPLAINT_LENGTH = 200;

/**
 * Runs a program that prints a secret. It gets the whole environment: it is the user's own way to the secret and needs its
 * credentials from there.
 */
export async function runCommand(
  program: string,
  args: readonly string[],
  { missing, ...options }: CommandOptions,
): Promise<CommandResult> {
  const end = await runProgram(program, args, {
    ...options,
    maxOutputBytes: 2 * MAX_SECRET_BYTES,
    killSignal: "SIGKILL",
  });
  switch (end.kind) {
    case "exited": {
      const complaint = end.code === 0 ? "" : firstLine(end.stderr);
      return { exitCode: end.code, stdout: end.stdout, complaint, reason: complaint || `exit code ${end.code}` };
    }
    case "not_found": {
      const { message = `needs the program ${program}, which was not found`, hint } = missing;
      throw new SecretFailure(message, { hint });
    }
    case "too_much_output":
      throw new SecretFailure(`is larger than ${MAX_SECRET_BYTES / 1024} KiB`);
    case "aborted":
    case "timed_out":
      throw new SecretFailure(`${program} was ended`, { passing: true, cause: options.signal.reason });
    case "killed":
      throw new SecretFailure(`${program} did not run: killed by ${end.signal}`);
    case "not_started":
      throw new SecretFailure(`${program} did not run: ${end.error.code}`);
  }
}

/** The value that the program of a cloud prints, used where its library is not installed. */
export async function askCloudProgram(
  program: string,
  args: readonly string[],
  { env, signal }: ProviderContext,
  library: { readonly name: string; readonly package: string },
): Promise<string> {
  const message = `needs ${library.name} or the ${program} program, and neither was found`;
  const missing = { message, hint: `npm install ${library.package}` };
  const result = await runCommand(program, args, { env, signal, missing });
  if (result.exitCode === 0) return result.stdout;
  throw new SecretFailure(`was not given by the ${program} program: ${result.reason}`);
}

function firstLine(text: string): string {
  const line = text.split(/[\r\n]+/).find((each) => each.trim() !== "") ?? "";
  // oxlint-disable-next-line no-control-regex
  return line
    .replace(/[\u0000-\u001f\u007f]/g, " ")
    .trim()
    .slice(0, MAX_COMPLAINT_LENGTH);
}

/** An address that credentials may be sent to: https, or this machine. The message shows no more of it than the host. */
export function checkAddress(text: string, what: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new SecretFailure(`cannot be looked up: ${what} is not an http or https address`);
  }
  if (url.protocol === "https:" || isLoopback(url.hostname)) return url;
  throw new SecretFailure(`cannot be looked up: ${what} is plain http, to ${url.host}`, {
    hint: "Use https. Plain http is allowed on loopback only.",
  });
}
