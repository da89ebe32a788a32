/** The servers that a client brings, from whatever it sent. What cannot be used is left out, and told of. */
import { homedir } from "node:os";
import { type CageDefaults, withCage } from "../../config/effective-cage.ts";
import { readServerEntry } from "../../config/read-entry.ts";
import { fingerprint } from "../../guard/fingerprint.ts";
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { ServerEntrySchema, type ServerSpec, SESSION_ORIGIN } from "../../model/server-spec.ts";
import { holdsReference } from "../../secrets/references.ts";
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
  /** Whether `${VAR}` and `secret://…` in it are looked up. */
  readonly looksUp: boolean;
  readonly wire?: WireEntry["open"];
}

export interface ServerReading {
  readonly workspaceDir: string | undefined;
  readonly mayRunCommands: boolean;
  /** Whether references may be looked up: they read the environment and the secrets of whoever runs the hub. */
  readonly mayLookUp: boolean;
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
  const { tell, workspaceDir, mayRunCommands, mayLookUp } = reading;
  const tellOf = (level: SessionNotice["level"], why: string, hint?: string): undefined => {
    const message = `The server "${name}" is left out: ${why}`;
    tell({ level, server: name, message, ...(hint === undefined ? {} : { hint }) });
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
  let spec: ServerSpec;
  try {
    const { _meta, ...entry } = raw;
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
  const looksUp = mayLookUp && holdsReferences(spec);
  if (!mayLookUp && holdsReferences(spec)) {
    const message = `The entry of the server "${name}" holds a reference such as \${VAR}; it is used as it stands.`;
    tell({ level: "warning", server: name, message, hint: "Send the value itself." });
  }
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

function holdsReferences(spec: ServerSpec): boolean {
  return specStrings(spec).some(({ text }) => holdsReference(text));
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
