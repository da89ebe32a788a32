/** The files of agent clients whose place is known: what servers they hold, in whatever format and words. */
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { AgentClient, ClientFile, ClientPlace } from "../../clients/client.ts";
import { editorFor } from "../../files/edit/editor.ts";
import { TextSyntaxError } from "../../files/edit/text-syntax-error.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Diagnostic } from "../diagnostics.ts";
import { Document } from "../document.ts";
import { type DialectRead, EntryReader } from "./entry.ts";
import { startsToolcrib } from "./own-entry.ts";
import { expandVariables, variableForInput } from "./variables.ts";

export type OpenedClientFile =
  | { readonly state: "absent" }
  | { readonly state: "broken"; readonly problem: Diagnostic }
  | {
      readonly state: "read";
      readonly document: Document;
      /** All of them by id, in the words that EntryReader knows. */
      readonly entries: Readonly<Record<string, JsonObject>>;
      /** The ids of those that start Toolcrib itself. */
      readonly own: readonly string[];
      /** What is no server, or lost something. No message holds a value. */
      readonly warnings: readonly Diagnostic[];
    };

export async function openClientFile(
  client: AgentClient,
  file: ClientFile,
  read: (path: string) => Promise<string> = (path) => readFile(path, "utf8"),
): Promise<OpenedClientFile> {
  let text: string;
  try {
    text = await read(file.path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    if (code === "ENOENT" || code === "ENOTDIR") return { state: "absent" };
    return { state: "broken", problem: broken(file, `the file cannot be read (${code})`) };
  }
  let value: unknown;
  try {
    value = editorFor(client.format).parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "this cannot be read";
    if (!(error instanceof TextSyntaxError)) return { state: "broken", problem: broken(file, reason) };
    // The place stands before the message of every diagnostic.
    return { state: "broken", problem: broken(file, reason.replace(/^line \d+, column \d+: /, ""), error) };
  }
  // Only JSON has a way from a path to a line.
  const document = client.format === "jsonc" ? Document.parse(file.path, text) : Document.ofValue(file.path, value);
  const { servers, problems } = client.read(value, file);
  const own = Object.entries(servers).filter(([id, entry]) => startsToolcrib(id, entry));
  const warnings = problems.map(({ path, message }) =>
    document.report(path, { severity: "warning", code: "not_read", message }),
  );
  return { state: "read", document, entries: servers, own: own.map(([id]) => id), warnings };
}

function broken(file: ClientFile, message: string, place?: { line: number; column: number }): Diagnostic {
  const { line, column } = place ?? { line: 0, column: 0 };
  return { severity: "error", code: "syntax", file: file.path, line, column, path: "", message };
}

/** The servers of an opened file as specs, without Toolcrib's own. */
export function readClientServers(
  client: AgentClient,
  file: ClientFile,
  opened: Extract<OpenedClientFile, { state: "read" }>,
  place: Pick<ClientPlace, "home" | "projectDir">,
): DialectRead {
  const baseDir = file.scope === "project" ? place.projectDir : dirname(file.path);
  const reader = new EntryReader(opened.document, client.id, { baseDir, userHome: place.home });
  reader.warnings.push(...opened.warnings);
  const container = containerOf(client, file);
  const variables = {
    workspaceFolder: place.projectDir,
    userHome: place.home,
    input(id: string): string {
      const name = variableForInput(id);
      reader.warn(container, "input", `the input ${JSON.stringify(id)} is read from the environment variable ${name}`);
      return `secret://env/${name}`;
    },
  };
  const others = Object.entries(opened.entries).filter(([id]) => !opened.own.includes(id));
  const servers = reader.readMap(container, Object.fromEntries(others), (raw) => expandVariables(raw, variables));
  return reader.finish(servers);
}

/** Where the entries stand, as far as that is the same for all. */
function containerOf(client: AgentClient, file: ClientFile): string[] {
  return client
    .pathOf("", file)
    .slice(0, -1)
    .filter((step) => typeof step === "string");
}
