/** Reads one server's entry that is not in a file, in any dialect, and writes a spec back as an entry. */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Diagnostic } from "../model/loaded-config.ts";
import { ServerEntrySchema, ServerIdSchema, type ServerSpec, type SpecOrigin } from "../model/server-spec.ts";
import { ConfigDocument, invalidConfigError } from "./config-document.ts";
import { readClaudeEntry } from "./dialects.ts";
import { findIgnoredKeys, NOT_A_SERVER } from "./entry-reader.ts";

export interface EntryContext {
  readonly origin: SpecOrigin;
  /** Where relative paths start. */
  readonly baseDir: string;
  readonly userHome: string;
}

export interface ReadEntry {
  readonly spec: ServerSpec;
  /** With Toolcrib's own keys, without defaults. */
  readonly entry: JsonObject;
  readonly warnings: readonly Diagnostic[];
}

/** Rejects with `invalid_config` that lists every problem; no message contains a value that may be a secret. */
export function readServerEntry(id: string, raw: unknown, { origin, baseDir, userHome }: EntryContext): ReadEntry {
  const document = ConfigDocument.ofValue(`server ${JSON.stringify(id)}`, raw);
  const refuse = (message: string, hint?: string): never => {
    throw invalidConfigError([document.report([], { severity: "error", code: "wrong_server", message, hint })]);
  };
  const checked = ServerIdSchema.safeParse(id);
  if (!checked.success) refuse(`this id is not allowed; expected ${checked.error.issues[0]?.message ?? "another one"}`);
  if (!isJsonObject(raw)) return refuse(NOT_A_SERVER);
  const { servers, problems, warnings, own } = readClaudeEntry(id, raw, document, { baseDir, userHome });
  if (own.length > 0) refuse("this entry starts Toolcrib itself");
  // A misspelled key is often why another one is missing.
  if (problems.length > 0) throw invalidConfigError([...problems, ...unknownKeys(warnings)]);
  const [spec] = servers;
  if (spec === undefined) return refuse("nothing here describes a server");
  const placed: ServerSpec = { ...spec, origin, baseDir };
  return { spec: placed, entry: toServerEntry(placed), warnings };
}

/**
 * An entry of an API request: an unknown key is an error, because no one would see the warning. What only another
 * program has a use for is left out, which the warnings say.
 */
export function readSubmittedEntry(id: string, raw: JsonObject, place: EntryContext): ReadEntry {
  const read = readServerEntry(id, raw, place);
  const unknown = unknownKeys(read.warnings);
  if (unknown.length > 0) throw invalidConfigError(unknown);
  const file = `server ${JSON.stringify(id)}`;
  const leftOut = findIgnoredKeys(raw).map((path): Diagnostic => ({ ...IGNORED_KEY, file, line: 0, column: 0, path }));
  return { ...read, warnings: [...read.warnings, ...leftOut] };
}

function unknownKeys(warnings: readonly Diagnostic[]): Diagnostic[] {
  return warnings.filter(({ code }) => code === "unknown_key").map((each) => ({ ...each, ...UNKNOWN_KEY }));
}

const UNKNOWN_KEY = { severity: "error", message: "this key is unknown" } as const;
const IGNORED_KEY = {
  severity: "warning",
  code: "left_out",
  message: "this key has no meaning here and is left out",
} as const;

/** Without what is the default anyway. */
export function toServerEntry(spec: ServerSpec): JsonObject {
  const { id: _id, origin: _origin, baseDir: _baseDir, ownFolder: _own, replaces: _replaces, ...rest } = spec;
  const { sandboxFrom, sandbox, fromProject: _project, hubInherit: _inherit, hubStart: _start, ...other } = rest;
  const { problem: _problem, ...entry } = other;
  const own = sandbox === undefined || sandboxFrom !== undefined ? {} : { sandbox };
  return withoutDefaults({ ...entry, ...own }, defaultsOfEntry());
}

let defaults: JsonObject | undefined;

function defaultsOfEntry(): JsonObject {
  return (defaults ??= ServerEntrySchema.parse({}));
}

/** A copy without what `usual` says anyway. */
export function withoutDefaults(value: JsonObject, usual: JsonObject): JsonObject {
  const short: JsonObject = {};
  for (const [key, each] of Object.entries(value)) {
    const other = usual[key];
    if (each === undefined || isDeepStrictEqual(each, other)) continue;
    short[key] = isJsonObject(each) && isJsonObject(other) ? withoutDefaults(each, other) : each;
  }
  return short;
}
