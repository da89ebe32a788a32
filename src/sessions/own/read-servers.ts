/** The servers that a client brings, from whatever it sent. What cannot be used is left out, and told of. */
import { homedir } from "node:os";
import { type CageDefaults, withCage } from "../../config/effective-cage.ts";
import { readServerEntry } from "../../config/read-entry.ts";
import { fingerprint } from "../../guard/fingerprint.ts";
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { ServerEntrySchema, type ServerSpec, SESSION_ORIGIN } from "../../model/server-spec.ts";
import { findReferences, holdsReference } from "../../secrets/references.ts";
import { specStrings } from "../../secrets/spec-strings.ts";
import type { LeftOutServer, SessionNotice, SessionServers } from "./own-parts.ts";
import { WireEntry } from "./wire-entry.ts";

export interface BroughtServer {
  /** As the client named it. */
  readonly name: string;
  /** Its id is given when it is taken up. */
  readonly spec: Omit<ServerSpec, "id">;
  /** The same for entries that mean the same. */
  readonly key: unknown;
  /** Whether it holds references, all of which may be looked up. Any other text is taken as it is. */
  readonly looksUp: boolean;
  readonly wire?: WireEntry["open"];
}

export interface ServerReading {
  readonly workspaceDir: string | undefined;
  readonly mayRunCommands: boolean;
  /**
   * Those that may be looked up, as they are written: they read the environment and the secrets of whoever runs the hub. An
   * entry with any other is left out.
   */
  readonly references: "any" | ReadonlySet<string>;
  /** The hub's: a client chooses no cage for its programs. */
  readonly cages: CageDefaults;
  readonly tell: (notice: SessionNotice) => void;
  /** Told of entries that the client wants used and that are not. */
  readonly onLeftOut?: (entry: LeftOutServer) => void;
}

/** While an entry is read: a client may call a server anything, also what the config keeps for itself. */
const NO_ID = "entry";
const LONGEST_NAME = 80;
const LONGEST_ID = 48;
/** Keys of an entry by which the operator grants something, or arranges servers. */
const OPERATORS = [
  "allowHttp",
  "isolation",
  "replicas",
  "roles",
  "sandbox",
  "skill",
  "tags",
  "toolPrefix",
  "trust",
] as const;

export function readServers(given: SessionServers, reading: ServerReading): BroughtServer[] {
  const names = new Set<string>();
  return namedEntries(given, reading).flatMap(({ name: wanted, raw }) => {
    const name = unique(wanted, names);
    if (name !== wanted) {
      const message = `There are several servers named "${wanted}"; one of them is called "${name}".`;
      reading.tell({ level: "warning", server: name, message });
    }
    return readOne(name, raw, reading) ?? [];
  });
}

interface NamedEntry {
  readonly name: string;
  readonly raw: unknown;
}

function namedEntries(given: SessionServers, { tell }: ServerReading): NamedEntry[] {
  // A whole config does as well.
  const servers = isJsonObject(given) && Object.keys(given).length === 1 ? (given["mcpServers"] ?? given) : given;
  if (!Array.isArray(servers)) {
    if (isJsonObject(servers)) return Object.entries(servers).map(([name, raw]) => ({ name: shownName(name), raw }));
    tell({ level: "warning", message: "The servers are neither a list nor an object; none is used." });
    return [];
  }
  return servers.flatMap((raw: unknown, index) => {
    const name = raw instanceof WireEntry ? raw.name : isJsonObject(raw) ? (raw["name"] ?? raw["id"]) : undefined;
    if (typeof name === "string" && name.trim() !== "") return [{ name: shownName(name), raw }];
    tell({ level: "warning", message: `Server ${index + 1} of the list has no name; it is left out.` });
    return [];
  });
}

function readOne(name: string, raw: unknown, reading: ServerReading): BroughtServer | undefined {
  const { tell, workspaceDir, mayRunCommands, references } = reading;
  const tellOf = (level: SessionNotice["level"], why: string, hint?: string): undefined => {
    const message = `The server "${name}" is left out: ${why}`;
    tell({ level, server: name, message, hint });
  };
  const leaveOut = (reason: string, why: string, hint?: string): undefined => {
    reading.onLeftOut?.({ name, reason });
    return tellOf("warning", why, hint);
  };
  const place = {
    origin: SESSION_ORIGIN,
    baseDir: workspaceDir ?? process.cwd(),
    userHome: homedir(),
  };
  if (raw instanceof WireEntry) {
    const spec = { ...ServerEntrySchema.parse({}), ...place, name };
    return { name, spec, key: raw, looksUp: false, wire: raw.open };
  }
  if (!isJsonObject(raw)) return leaveOut("its entry cannot be used", "its entry is no object.");
  const { _meta, ...entry } = raw;
  const refused = (strings: Iterable<FoundString>): string | undefined =>
    references === "any" ? undefined : refusedReference(strings, references);
  const written = refused(stringsOf(entry));
  if (written !== undefined) return leaveOut("its entry holds a reference", written, REFERENCE_HINT);
  let spec: ServerSpec;
  try {
    const read = readServerEntry(NO_ID, entry, place);
    spec = read.spec;
    tellOfKeys(name, read.entry, read.warnings, tell);
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    return leaveOut("its entry cannot be used", message.replaceAll(`server "${NO_ID}"`, "its entry"), hint);
  }
  if (!spec.enabled) return tellOf("info", "its entry disables it.");
  if (spec.command !== undefined && !mayRunCommands) {
    const hint = "Programs are started for clients on stdio, and for tokens with the scope `admin`.";
    return leaveOut(
      "this client may not start programs",
      "it is a program, and this client may not start programs.",
      hint,
    );
  }
  if (spec.command === undefined && spec.url === undefined) {
    return leaveOut("its entry cannot be used", "it names neither a command nor a url.");
  }
  const strings = specStrings(spec);
  // Again, because a foreign spelling may have become a reference while it was read.
  const read = refused(strings);
  if (read !== undefined) return leaveOut("its entry holds a reference", read, REFERENCE_HINT);
  const looksUp = strings.some(({ text }) =>
    references === "any" ? holdsReference(text) : findReferences(text).length > 0,
  );
  const login = spec.auth?.type === "oauth" || spec.auth?.type === "client-credentials";
  if (login) {
    const message = `Nobody logs in for the server "${name}": logins are for servers of the config.`;
    tell({ level: "warning", server: name, message, hint: "Send a token in `headers`." });
  }
  const own = withCage(ownSpec(spec, name, workspaceDir), reading.cages);
  return { name, spec: own, key: fingerprint(own), looksUp };
}

/** What a client says of its own server counts, but for what only an operator can say. */
function ownSpec(spec: ServerSpec, name: string, workspaceDir: string | undefined): Omit<ServerSpec, "id"> {
  const {
    id: _id,
    roles: _roles,
    tags: _tags,
    toolPrefix: _prefix,
    allowHttp: _allowHttp,
    sandbox: _sandbox,
    skill: _skill,
    replicas: _replicas,
    ...rest
  } = spec;
  const isProgram = spec.command !== undefined;
  const cwd = spec.cwd ?? (isProgram ? workspaceDir : undefined);
  return {
    ...rest,
    name,
    trust: "untrusted",
    isolation: "shared",
    ownFolder: workspaceDir ?? null,
    ...(cwd === undefined ? {} : { cwd }),
    ...(isProgram ? { transport: "stdio" } : {}),
  };
}

function tellOfKeys(
  name: string,
  entry: JsonObject,
  warnings: readonly { readonly code: string; readonly path: string }[],
  tell: ServerReading["tell"],
): void {
  const unknown = warnings.flatMap(({ code, path }) => (code === "unknown_key" ? [path] : []));
  const ignored = [...OPERATORS.filter((key) => entry[key] !== undefined), ...unknown];
  if (ignored.length === 0) return;
  tell({
    level: "info",
    server: name,
    message: `Of the entry of the server "${name}" this is not used: ${ignored.join(", ")}.`,
  });
}

/** `${…}` in every form that some program expands, and `secret://…`. A `$${` is not the beginning of one. */
const REFERENCE = /\$\$\{|\$\{[^}]*\}|secret:\/\/[^\s"'`,;<>{}|\\^]*/gi;
const REFERENCE_HINT =
  "Send the value itself; `$${` stands for a literal `${`. Whoever runs Toolcrib can allow single references in `sessions.allowReferences`.";
const LONGEST_REFERENCE = 80;
/** No entry that can be used comes near it. */
const MAX_DEPTH = 32;

interface FoundString {
  /** As a person would point at it: `env.TOKEN`, `args[2]`. */
  readonly where: string;
  readonly text: string;
}

/** Says which string holds the first reference that the client may not use. */
function refusedReference(strings: Iterable<FoundString>, allowed: ReadonlySet<string>): string | undefined {
  for (const { where, text } of strings) {
    const written = text.match(REFERENCE)?.find((found) => found !== "$${");
    if (written === undefined) continue;
    const found = findReferences(text).map((reference) => reference.text);
    if (found.length > 0 && found.every((reference) => allowed.has(reference))) continue;
    const shown = shownReference(found.find((reference) => !allowed.has(reference)) ?? written);
    return `${shownName(where)} holds the reference ${shown}, and what a client brings is taken literally.`;
  }
  return undefined;
}

/** All strings of an entry, names of keys included. */
function* stringsOf(value: unknown, where = "", depth = 0): Generator<FoundString> {
  if (typeof value === "string") yield { where, text: value };
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return;
  for (const [key, item] of Object.entries(value)) {
    const isItem = Array.isArray(value);
    if (!isItem) yield { where: `a name in ${where === "" ? "its entry" : where}`, text: key };
    yield* stringsOf(item, isItem ? `${where}[${key}]` : where === "" ? key : `${where}.${key}`, depth + 1);
  }
}

/** Without a default, which may be the secret itself. */
function shownReference(reference: string): string {
  const plain = shownName(reference.replace(/:-[^]*\}$/, ":-…}"));
  return plain.length > LONGEST_REFERENCE ? `${plain.slice(0, LONGEST_REFERENCE)}…` : plain;
}

/** Without what could fake another line of a log or of a prompt. */
function shownName(name: string): string {
  return name
    .replace(/[\s\p{Cc}"]+/gu, " ")
    .trim()
    .slice(0, LONGEST_NAME)
    .toWellFormed();
}

/** What the id of a server of this name begins with. */
export function plainId(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._ -]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return plain.slice(0, LONGEST_ID) || "server";
}

function unique(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}
