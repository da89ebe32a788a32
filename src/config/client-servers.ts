/** All servers that one agent client has, in its files of the user and of a project. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { AgentClient, ClientFile, ClientEnvironment } from "../clients/agent-client.ts";
import { editorFor } from "../files/edit/editors.ts";
import { TextSyntaxError } from "../files/edit/text-syntax.ts";
import { systemErrorCode } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Diagnostic } from "../model/loaded-config.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { asSkipped, ConfigDocument, duplicateServer, fileDiagnostic } from "./config-document.ts";
import { expandVariables, variableForInput } from "./editor-variables.ts";
import { type DialectRead, EntryReader, isToolcribEntry } from "./entry-reader.ts";

interface ClientServers {
  /** One for each file that could be read, in the order in which they win. */
  readonly layers: readonly { readonly file: string; readonly servers: readonly ServerSpec[] }[];
  readonly warnings: readonly Diagnostic[];
  /** Files that are there and cannot be read, with the line. */
  readonly broken: readonly Diagnostic[];
  /** Ids of entries that start Toolcrib itself; they are left out. */
  readonly own: readonly string[];
  /** Paths of all that were looked for. */
  readonly files: readonly string[];
}

export function isInstalled(client: AgentClient, place: ClientEnvironment): boolean {
  return [
    ...client.traces(place),
    ...client
      .files(place)
      .filter(isUserFile)
      .map(({ path }) => path),
  ].some((path) => existsSync(path));
}

/** A project's file may be there for colleagues. */
function isUserFile({ scope }: { readonly scope: "user" | "project" }): boolean {
  return scope === "user";
}

interface ClientReadOptions {
  /** Reads files of the project; those of the user are read as they are. */
  readonly readProject?: (file: string) => Promise<string>;
  /** The files to read; all if absent. */
  readonly only?: (file: ClientFile) => boolean;
}

export async function readServersOfClient(
  client: AgentClient,
  place: ClientEnvironment,
  { readProject, only = () => true }: ClientReadOptions = {},
): Promise<ClientServers> {
  const all = client.files(place).filter(only);
  const layers: ClientServers["layers"][number][] = [];
  const warnings: Diagnostic[] = [];
  const broken: Diagnostic[] = [];
  const own = new Set<string>();
  const taken = new Map<string, ServerSpec>();
  for (const file of all.toSorted((one, other) => rankOf(one) - rankOf(other))) {
    const opened = await openClientFile(client, file, isProjectFile(file) ? readProject : undefined);
    if (opened.state === "absent") continue;
    if (opened.state === "broken") {
      if (!broken.some((problem) => problem.file === file.path)) broken.push(opened.problem);
      continue;
    }
    for (const id of opened.own) own.add(id);
    const read = readClientServers(client, file, opened, place);
    warnings.push(...read.warnings, ...read.problems.map((problem) => asSkipped(problem, "this server is skipped")));
    const fresh = read.servers.filter((spec) => {
      const earlier = taken.get(spec.id);
      if (earlier === undefined) taken.set(spec.id, spec);
      else if (!isSameEntry(earlier, spec))
        warnings.push(duplicateServer(spec.id, spec.origin.file, earlier.origin.file));
      return earlier === undefined;
    });
    layers.push({ file: file.path, servers: fresh });
  }
  return { layers, warnings, broken, own: [...own], files: [...new Set(all.map(({ path }) => path))] };
}

/** As opposed to what the user keeps about a project. */
export function isProjectFile({ scope, projectKey }: ClientFile): boolean {
  return scope === "project" && projectKey === undefined;
}

/** The user's entries for this project win over the project's own, and those over the user's entries for all projects. */
function rankOf({ scope, projectKey }: ClientFile): number {
  if (scope === "user") return 2;
  return projectKey === undefined ? 1 : 0;
}

/** Whether two servers differ in nothing but the file that they are from. */
export function isSameEntry(a: ServerSpec, b: ServerSpec): boolean {
  const entryOf = ({ origin: _origin, baseDir: _baseDir, ...entry }: ServerSpec): object => entry;
  return isDeepStrictEqual(entryOf(a), entryOf(b));
}

// The files of agent clients: the servers in them, in any format and dialect.

type OpenedClientFile =
  | { readonly state: "absent" }
  | { readonly state: "broken"; readonly problem: Diagnostic }
  | {
      readonly state: "read";
      readonly document: ConfigDocument;
      /** All of them by id, with the keys that EntryReader knows. */
      readonly entries: Readonly<Record<string, JsonObject>>;
      /** The ids of those that start Toolcrib itself. */
      readonly own: readonly string[];
      /** Entries that are not servers, or lost something. No message contains a value. */
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
    const code = systemErrorCode(error) ?? "unknown reason";
    if (code === "ENOENT" || code === "ENOTDIR") return { state: "absent" };
    return { state: "broken", problem: unreadableFile(file, `the file cannot be read (${code})`) };
  }
  let value: unknown;
  try {
    value = editorFor(client.format).parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "this cannot be read";
    if (!(error instanceof TextSyntaxError)) return { state: "broken", problem: unreadableFile(file, reason) };
    // Every diagnostic shows its place before the message.
    return { state: "broken", problem: unreadableFile(file, reason.replace(/^line \d+, column \d+: /, ""), error) };
  }
  // Only JSON has a way from a path to a line.
  const document =
    client.format === "jsonc" ? ConfigDocument.parse(file.path, text) : ConfigDocument.ofValue(file.path, value);
  const { servers, problems } = client.read(value, file);
  const own = Object.entries(servers).filter(([id, entry]) => isToolcribEntry(id, entry));
  const warnings = problems.map(({ path, message }) =>
    document.report(path, { severity: "warning", code: "not_read", message }),
  );
  return { state: "read", document, entries: servers, own: own.map(([id]) => id), warnings };
}

function unreadableFile(file: ClientFile, message: string, place?: { line: number; column: number }): Diagnostic {
  const diagnostic = fileDiagnostic(file.path, "", { severity: "error", code: "syntax", message });
  return place === undefined ? diagnostic : { ...diagnostic, line: place.line, column: place.column };
}

/** The servers of an opened file as specs, without Toolcrib's own. */
function readClientServers(
  client: AgentClient,
  file: ClientFile,
  opened: Extract<OpenedClientFile, { state: "read" }>,
  place: Pick<ClientEnvironment, "home" | "projectDir">,
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

/** The path of the object that the entries are in. */
function containerOf(client: AgentClient, file: ClientFile): string[] {
  return client
    .pathOf("", file)
    .slice(0, -1)
    .filter((step) => typeof step === "string");
}
