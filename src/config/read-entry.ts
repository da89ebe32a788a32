/** Reads one server's entry that stands in no file, in the words of any dialect. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ServerIdSchema, type ServerSpec, type SpecOrigin } from "../model/server-spec.ts";
import { formatPath } from "./config-path.ts";
import { type Diagnostic, invalidConfig } from "./diagnostics.ts";
import { meaninglessKeys } from "./dialects/aliases.ts";
import { readDialect } from "./dialects/detect.ts";
import { Document } from "./document.ts";
import { entryOfSpec } from "./spec-entry.ts";

export interface EntryPlace {
  readonly origin: SpecOrigin;
  /** Where relative paths start. */
  readonly baseDir: string;
  readonly userHome: string;
}

export interface ReadEntry {
  readonly spec: ServerSpec;
  /** In Toolcrib's own words, without defaults. */
  readonly entry: JsonObject;
  readonly warnings: readonly Diagnostic[];
}

/** Rejects with `invalid_config` that lists every problem; no message holds a value that may be a secret. */
export function readServerEntry(id: string, raw: unknown, { origin, baseDir, userHome }: EntryPlace): ReadEntry {
  const document = Document.ofValue(`server ${JSON.stringify(id)}`, raw);
  const refuse = (message: string, hint?: string): never => {
    throw invalidConfig([document.report([], { severity: "error", code: "wrong_server", message, hint })]);
  };
  const checked = ServerIdSchema.safeParse(id);
  if (!checked.success)
    refuse(`this id is not allowed; allowed is ${checked.error.issues[0]?.message ?? "another one"}`);
  if (!isJsonObject(raw)) refuse("found no object; allowed is an object that describes a server");
  const { servers, problems, warnings, own } = readDialect(
    { mcpServers: { [id]: raw } },
    { file: document.file, document, baseDir, userHome },
  );
  if (own.length > 0) refuse("this entry starts Toolcrib itself");
  if (problems.length > 0) throw invalidConfig(problems.map((each) => inside(each, id)));
  const [spec] = servers;
  if (spec === undefined) return refuse("found nothing that describes a server");
  const placed: ServerSpec = { ...spec, origin, baseDir };
  return { spec: placed, entry: entryOfSpec(placed), warnings: warnings.map((each) => inside(each, id)) };
}

/**
 * An entry that somebody sends: an unknown key is a problem there, because nobody would see the warning. What only another
 * program has a use for is left out, which the warnings say.
 */
export function readSentEntry(id: string, raw: JsonObject, place: EntryPlace): ReadEntry {
  const read = readServerEntry(id, raw, place);
  const unknown = read.warnings.filter(({ code }) => code === "unknown_key");
  if (unknown.length > 0) throw invalidConfig(unknown.map((each) => ({ ...each, ...UNKNOWN })));
  const file = `server ${JSON.stringify(id)}`;
  const leftOut = meaninglessKeys(raw).map((path): Diagnostic => ({ ...LEFT_OUT, file, line: 0, column: 0, path }));
  return { ...read, warnings: [...read.warnings, ...leftOut] };
}

const UNKNOWN = { severity: "error", message: "this key is unknown" } as const;
const LEFT_OUT = {
  severity: "warning",
  code: "left_out",
  message: "this key means nothing here and is left out",
} as const;

/** The path without what was put around the entry. */
function inside(diagnostic: Diagnostic, id: string): Diagnostic {
  const around = formatPath(["mcpServers", id]);
  if (!diagnostic.path.startsWith(around)) return diagnostic;
  return { ...diagnostic, path: diagnostic.path.slice(around.length).replace(/^\./, "") };
}
