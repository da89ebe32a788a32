/** `toolcrib secrets check`, `toolcrib secrets set NAME` and `toolcrib secrets set store/NAME`. */
import { toolcribHome, userHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { fixedValues, type Overrides } from "../../model/server-spec.ts";
import { specStrings } from "../../secrets/resolve-spec.ts";
import { parseReferences, type Reference, writeReference } from "../../secrets/secret-references.ts";
import { type StoredSecret, storeSecret, storeUserSecret } from "../../secrets/secret-storage.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import { loadCommandConfig } from "../command-config.ts";
import { openCommandHome, withStoredServers } from "../command-home.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";
import { readSecret } from "../terminal-input.ts";

const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** Before a name: encrypted, in the store of the hub. */
const STORE_PREFIX = "store/";

export async function run(invocation: Invocation): Promise<number> {
  const [action, name] = invocation.args;
  if (action === "check" && name === undefined) return runCheck(invocation);
  if (action === "set") return runSet(invocation, name);
  throw new ToolcribError("invalid_arguments", "Use toolcrib secrets check, or toolcrib secrets set <name>.", {
    hint: "Run toolcrib secrets --help for details.",
  });
}

async function runCheck(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const config = await loadCommandConfig(invocation);
  const home = await openCommandHome(invocation, config, false);
  let checked: CheckedReference[];
  try {
    checked = await checkReferences(await withStoredServers(invocation, config, home), home.secrets);
  } finally {
    await home.close();
  }
  out.list(COLUMNS, checked, "The config has no references.");
  const missing = checked.filter(({ found }) => found === false);
  if (!out.json) for (const { reference, hint } of missing) if (hint !== undefined) out.note(`${reference}: ${hint}`);
  return missing.length === 0 ? 0 : 1;
}

const COLUMNS: readonly Column<CheckedReference>[] = [
  { title: "REFERENCE", cell: ({ reference }) => reference },
  { title: "PROVIDER", cell: ({ provider }) => provider },
  { title: "FOUND", cell: ({ found }) => (found === null ? "per user" : found ? "yes" : "no") },
  { title: "LENGTH", cell: ({ length }) => (length === undefined ? "-" : String(length)) },
  { title: "USED IN", cell: ({ usedIn }) => usedIn.join(", "), shrink: true },
  { title: "REASON", cell: ({ found, reason }) => (found === false ? (reason ?? "") : ""), shrink: true },
];

async function runSet(invocation: Invocation, given: string | undefined): Promise<number> {
  const { args, flags, stdin, out, env } = invocation;
  if (args.length > 2) {
    const message = "Do not pass the value on the command line, where other users can see it.";
    const hint = "Omit it to be prompted for it, or pass it on stdin with --stdin.";
    throw new ToolcribError("invalid_arguments", message, { hint });
  }
  const isForStore = given?.startsWith(STORE_PREFIX) === true;
  const name = isForStore ? given?.slice(STORE_PREFIX.length) : given;
  // Not quoted, because it may be NAME=value.
  if (name === undefined || !SECRET_NAME.test(name)) {
    const message = "The name of a secret consists of up to 64 letters, digits and underscores.";
    const hint = "Run toolcrib secrets set NAME; it prompts for the value.";
    throw new ToolcribError("invalid_arguments", message, { hint });
  }
  const user = flags.text("user");
  if (isForStore && user !== undefined) {
    throw new ToolcribError("invalid_arguments", "The store cannot hold secrets of single users.", {
      hint: `To store it in a file, run toolcrib secrets set ${name} --user <user>.`,
    });
  }
  const prompt = `Value of ${name} (hidden): `;
  const value = await readSecret(stdin, { fromPipe: flags.has("stdin"), prompt, prompts: out.prompts });
  const place = { env, home: toolcribHome(env), userHome: userHome(env) };
  const stored = isForStore
    ? await sealSecret(invocation, name, value)
    : user === undefined
      ? await storeSecret(name, value, place)
      : await storeUserSecret(user, name, value, place);
  if (out.json) {
    out.value({ name, ...stored });
    return 0;
  }
  if (stored.note !== undefined) out.note(stored.note);
  const location = stored.file ?? (stored.stored === "store" ? "the store, encrypted" : "the keychain");
  out.note(`Stored in ${location}. Use this reference in the config:`);
  out.line(stored.reference);
  return 0;
}

type Sealed = Omit<StoredSecret, "stored"> & { readonly stored: "store" };

async function sealSecret(invocation: Invocation, name: string, value: string): Promise<Sealed> {
  invocation.out.redactor.addCredential(value);
  const home = await openCommandHome(invocation, await loadCommandConfig(invocation), true);
  try {
    if (home.sealed === undefined) throw new ToolcribError("invalid_config", "There is no store for the secret.");
    await home.sealed.put(name, value);
    return { stored: "store", reference: writeReference("store", name) };
  } finally {
    await home.close();
  }
}

export interface CheckedReference {
  readonly reference: string;
  /** `default` if a variable is not set and its default is used. */
  readonly provider: string;
  /** null for a value that differs by user. */
  readonly found: boolean | null;
  /** Characters of the value. */
  readonly length?: number;
  readonly reason?: string;
  readonly hint?: string;
  readonly usedIn: readonly string[];
}

interface ReferenceLocation {
  readonly where: string;
  readonly text: string;
  readonly baseDir: string;
}

/** Config keys besides the servers whose strings may have references. */
const OTHER_KEYS = ["roles", "http", "agent", "store", "audit", "approvals"] as const;

async function checkReferences(config: LoadedConfig, secrets: Secrets): Promise<CheckedReference[]> {
  const uses = new Map<string, { place: ReferenceLocation; reference: Reference | ToolcribError; usedIn: string[] }>();
  for (const place of referenceLocations(config)) {
    for (const reference of referencesOf(place.text)) {
      const name = reference instanceof ToolcribError ? reference.message : reference.text;
      const key = JSON.stringify([name, place.baseDir]);
      const known = uses.get(key);
      if (known === undefined) uses.set(key, { place, reference, usedIn: [place.where] });
      else if (!known.usedIn.includes(place.where)) known.usedIn.push(place.where);
    }
  }
  return Promise.all(
    [...uses.values()].map(async ({ place, reference, usedIn }) => ({
      ...(await checkReference(reference, place, secrets)),
      usedIn,
    })),
  );
}

type Checked = Omit<CheckedReference, "usedIn">;

async function checkReference(
  reference: Reference | ToolcribError,
  { baseDir }: ReferenceLocation,
  secrets: Secrets,
): Promise<Checked> {
  if (reference instanceof ToolcribError) {
    return { reference: String(reference.details?.["reference"]), provider: "none", ...failure(reference) };
  }
  const { text } = reference;
  const provider = reference.kind === "variable" ? "env" : reference.provider;
  if (provider === "user") {
    return { reference: text, provider, found: null, reason: "looked up for each user who connects" };
  }
  try {
    const { value, looked } = await secrets.resolve(text, { baseDir });
    return { reference: text, provider: looked.length === 0 ? "default" : provider, found: true, length: value.length };
  } catch (error) {
    if (!(error instanceof ToolcribError)) throw error;
    return { reference: text, provider, ...failure(error, text) };
  }
}

function failure({ message, hint }: ToolcribError, reference = ""): Pick<Checked, "found" | "reason" | "hint"> {
  const reason = message.startsWith(`${reference} `) ? message.slice(reference.length + 1) : message;
  return { found: false, reason, hint };
}

function referenceLocations({ servers, config, baseDir }: LoadedConfig): ReferenceLocation[] {
  const ofServers = servers.flatMap((spec) =>
    [...specStrings(spec), ...fixedStrings(spec.overrides)].map(({ where, text }) => ({
      where: `${spec.id}: ${where}`,
      text,
      baseDir: spec.baseDir,
    })),
  );
  const others = OTHER_KEYS.flatMap((key) => strings(config[key], key));
  const ofRoles = (["roles", "views"] as const).flatMap((key) =>
    Object.entries(config[key]).flatMap(([name, { overrides }]) =>
      fixedStrings(overrides).map(({ where, text }) => ({ where: `${key}.${name}.${where}`, text })),
    ),
  );
  return [...ofServers, ...[...others, ...ofRoles].map((place) => ({ ...place, baseDir }))];
}

/** Of overrides only what they fix may have references. */
function fixedStrings(overrides: Overrides | undefined): { where: string; text: string }[] {
  return fixedValues(overrides).flatMap(({ path, value }) => strings(value, `overrides.${path.join(".")}`));
}

function strings(value: unknown, where: string): { where: string; text: string }[] {
  if (typeof value === "string") return [{ where, text: value }];
  if (Array.isArray(value)) return value.flatMap((each, index) => strings(each, `${where}[${index}]`));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === "overrides" ? [] : strings(each, `${where}.${key}`)));
}

/** A malformed reference counts as not found. */
function referencesOf(text: string): (Reference | ToolcribError)[] {
  try {
    return parseReferences(text).filter((part) => typeof part !== "string");
  } catch (error) {
    if (error instanceof ToolcribError) return [error];
    throw error;
  }
}
