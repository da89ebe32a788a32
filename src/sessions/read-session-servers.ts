/** Reads the servers that a client brings. Entries that cannot be used are left out, and reported. */
import { homedir } from "node:os";
import { type ServerDefaults, withServerDefaults } from "../config/server-defaults.ts";
import { readServerEntry } from "../config/server-entry.ts";
import { fingerprint } from "../base/fingerprint.ts";
import { asToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ServerEntrySchema, type ServerSpec, SESSION_ORIGIN } from "../model/server-spec.ts";
import { specStrings } from "../secrets/resolve-spec.ts";
import { findReferences, hasReference } from "../secrets/secret-references.ts";
import type { Wire } from "../upstream/wire.ts";
import type { LeftOutServer, SessionNotice, SessionServers } from "./session-parts.ts";

export interface SessionServerEntry {
  /** As the client named it. */
  readonly name: string;
  /** Its id is given when it is taken up. */
  readonly spec: Omit<ServerSpec, "id">;
  /** The same for entries that mean the same. */
  readonly key: unknown;
  /** Whether it has references, all of which may be resolved. Any other text is taken literally. */
  readonly resolvesReferences: boolean;
  readonly wire?: WireEntry["open"];
}

export interface ReadServersOptions {
  readonly workspaceDir: string | undefined;
  readonly mayRunCommands: boolean;
  /**
   * Those that may be looked up, as they are written: they read the environment and the secrets of whoever runs the hub. An
   * entry with any other is left out.
   */
  readonly references: "any" | ReadonlySet<string>;
  /** Milliseconds, for entries that name none. */
  readonly toolTimeout: number;
  /** The hub's: a client does not choose the sandbox of its programs. */
  readonly serverDefaults: ServerDefaults;
  readonly tell: (notice: SessionNotice) => void;
  /** Gets the entries that the client wants and that are not used. */
  readonly onLeftOut?: (entry: LeftOutServer) => void;
}

/** While an entry is read: a client may call a server anything, also what the config keeps for itself. */
const PLACEHOLDER_ID = "entry";
const MAX_NAME_LENGTH = 80;
const MAX_ID_LENGTH = 48;
/** Keys of an entry by which the operator grants something, or arranges servers. */
const OPERATOR_KEYS = [
  "allowHttp",
  "inherit",
  "isolation",
  "replicas",
  "roles",
  "sandbox",
  "skill",
  "tags",
  "toolPrefix",
  "trust",
] as const;

export function readSessionServers(given: SessionServers, reading: ReadServersOptions): SessionServerEntry[] {
  const names = new Set<string>();
  return namedEntries(given, reading).flatMap(({ name: wanted, raw }) => {
    const name = uniqueName(wanted, names);
    if (name !== wanted) {
      const message = `Several servers are named "${wanted}". One of them is now called "${name}".`;
      reading.tell({ level: "warning", server: name, message });
    }
    return readOne(name, raw, reading) ?? [];
  });
}

interface NamedEntry {
  readonly name: string;
  readonly raw: unknown;
}

function namedEntries(given: SessionServers, { tell }: ReadServersOptions): NamedEntry[] {
  // A whole config does as well.
  const servers = isJsonObject(given) && Object.keys(given).length === 1 ? (given["mcpServers"] ?? given) : given;
  if (!Array.isArray(servers)) {
    if (isJsonObject(servers))
      return Object.entries(servers).map(([name, raw]) => ({ name: printableName(name), raw }));
    tell({ level: "warning", message: "The servers are neither a list nor an object. None is used." });
    return [];
  }
  return servers.flatMap((raw: unknown, index) => {
    const name = raw instanceof WireEntry ? raw.name : isJsonObject(raw) ? (raw["name"] ?? raw["id"]) : undefined;
    if (typeof name === "string" && name.trim() !== "") return [{ name: printableName(name), raw }];
    tell({ level: "warning", message: `Server ${index + 1} of the list has no name and is left out.` });
    return [];
  });
}

function readOne(name: string, raw: unknown, reading: ReadServersOptions): SessionServerEntry | undefined {
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
    const spec = { ...ServerEntrySchema.parse({}), ...place, name, toolTimeout: reading.toolTimeout };
    return { name, spec, key: raw, resolvesReferences: false, wire: raw.open };
  }
  if (!isJsonObject(raw)) return leaveOut("its entry cannot be used", "its entry is not an object.");
  const { _meta, ...entry } = raw;
  const refused = (strings: Iterable<FoundString>): string | undefined =>
    references === "any" ? undefined : refusedReference(strings, references);
  const written = refused(stringsOf(entry));
  if (written !== undefined) return leaveOut("its entry contains a reference", written, REFERENCE_HINT);
  let spec: ServerSpec;
  try {
    const read = readServerEntry(PLACEHOLDER_ID, entry, place);
    spec = read.entry["toolTimeout"] === undefined ? { ...read.spec, toolTimeout: reading.toolTimeout } : read.spec;
    reportUnusedKeys(name, read.entry, read.warnings, tell);
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    return leaveOut("its entry cannot be used", message.replaceAll(`server "${PLACEHOLDER_ID}"`, "its entry"), hint);
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
  if (read !== undefined) return leaveOut("its entry contains a reference", read, REFERENCE_HINT);
  const resolvesReferences = strings.some(({ text }) =>
    references === "any" ? hasReference(text) : findReferences(text).length > 0,
  );
  const login = spec.auth?.type === "oauth" || spec.auth?.type === "client-credentials";
  if (login) {
    const message = `No one can log in to the server "${name}": only servers of the config support logins.`;
    tell({ level: "warning", server: name, message, hint: "Send a token in `headers`." });
  }
  const own = withServerDefaults(sessionSpec(spec, name, workspaceDir), reading.serverDefaults);
  return { name, spec: own, key: fingerprint(own), resolvesReferences };
}

/** Without the settings that only an operator may choose. */
function sessionSpec(spec: ServerSpec, name: string, workspaceDir: string | undefined): Omit<ServerSpec, "id"> {
  const {
    id: _id,
    roles: _roles,
    tags: _tags,
    toolPrefix: _prefix,
    allowHttp: _allowHttp,
    inherit: _inherit,
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

function reportUnusedKeys(
  name: string,
  entry: JsonObject,
  warnings: readonly { readonly code: string; readonly path: string }[],
  tell: ReadServersOptions["tell"],
): void {
  const unknown = warnings.flatMap(({ code, path }) => (code === "unknown_key" ? [path] : []));
  const ignored = [...OPERATOR_KEYS.filter((key) => entry[key] !== undefined), ...unknown];
  if (ignored.length === 0) return;
  tell({
    level: "info",
    server: name,
    message: `These keys in the entry of the server "${name}" are not used: ${ignored.join(", ")}.`,
  });
}

/** `${…}` in every form that some program expands, and `secret://…`. A `$${` is not the beginning of one. */
const REFERENCE = /\$\$\{|\$\{[^}]*\}|secret:\/\/[^\s"'`,;<>{}|\\^]*/gi;
const REFERENCE_HINT =
  "Send the value itself, with `$${` for a literal `${`. The operator can allow references in `sessions.allowReferences`.";
const MAX_REFERENCE_LENGTH = 80;
/** No entry that can be used comes near it. */
const MAX_DEPTH = 32;

interface FoundString {
  /** As a person would point at it: `env.TOKEN`, `args[2]`. */
  readonly where: string;
  readonly text: string;
}

/** Describes the first reference that the client may not use. */
function refusedReference(strings: Iterable<FoundString>, allowed: ReadonlySet<string>): string | undefined {
  for (const { where, text } of strings) {
    const written = text.match(REFERENCE)?.find((found) => found !== "$${");
    if (written === undefined) continue;
    const found = findReferences(text).map((reference) => reference.text);
    if (found.length > 0 && found.every((reference) => allowed.has(reference))) continue;
    const shown = printableReference(found.find((reference) => !allowed.has(reference)) ?? written);
    return `${printableName(where)} contains the reference ${shown}. Entries from a client are taken literally.`;
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
function printableReference(reference: string): string {
  const plain = printableName(reference.replace(/:-[^]*\}$/, ":-…}"));
  return plain.length > MAX_REFERENCE_LENGTH ? `${plain.slice(0, MAX_REFERENCE_LENGTH)}…` : plain;
}

/** Without what could fake another line of a log or of a prompt. */
function printableName(name: string): string {
  return name
    .replace(/[\s\p{Cc}"]+/gu, " ")
    .trim()
    .slice(0, MAX_NAME_LENGTH)
    .toWellFormed();
}

/** The first part of the id of a server with this name. */
export function baseId(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._ -]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return plain.slice(0, MAX_ID_LENGTH) || "server";
}

function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}

/**
 * A server that is reached in a way only the program knows, such as through the client's own connection. It is in the
 * list of servers like any entry. The same object again means the same server.
 *
 *     await session.own.mount([new WireEntry("files", () => wireOverAcp(connection, "files"))]);
 */
export class WireEntry {
  readonly name: string;
  /** Makes an unopened wire; called again for every reconnect. */
  readonly open: () => Wire;

  constructor(name: string, open: () => Wire) {
    this.name = name;
    this.open = open;
  }
}
