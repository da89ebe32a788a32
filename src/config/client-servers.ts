/** All servers that one agent client has, in its files of the user and of a project. */
import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { AgentClient, ClientFile, ClientPlace } from "../clients/client.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { asWarning, type Diagnostic } from "./diagnostics.ts";
import { openClientFile, readClientServers } from "./dialects/client-file.ts";
import { userHome } from "./find-config.ts";

export interface ClientServers {
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

/** The machine that this runs on. */
export function thisPlace(env: NodeJS.ProcessEnv, projectDir: string): ClientPlace {
  return { platform: process.platform, home: userHome(env), env, projectDir };
}

export function isInstalled(client: AgentClient, place: ClientPlace): boolean {
  return [
    ...client.traces(place),
    ...client
      .files(place)
      .filter(isUsers)
      .map(({ path }) => path),
  ].some((path) => existsSync(path));
}

/** A project's file may be there for colleagues. */
function isUsers({ scope }: { readonly scope: "user" | "project" }): boolean {
  return scope === "user";
}

interface ReadOptions {
  /** Reads files that the project brings; those of the user are read as they are. */
  readonly readProject?: (file: string) => Promise<string>;
}

export async function serversOfClient(
  client: AgentClient,
  place: ClientPlace,
  { readProject }: ReadOptions = {},
): Promise<ClientServers> {
  const all = client.files(place);
  const layers: ClientServers["layers"][number][] = [];
  const warnings: Diagnostic[] = [];
  const broken: Diagnostic[] = [];
  const own = new Set<string>();
  const taken = new Map<string, ServerSpec>();
  for (const file of all.toSorted((one, other) => rankOf(one) - rankOf(other))) {
    const opened = await openClientFile(client, file, isOfProject(file) ? readProject : undefined);
    if (opened.state === "absent") continue;
    if (opened.state === "broken") {
      if (!broken.some((problem) => problem.file === file.path)) broken.push(opened.problem);
      continue;
    }
    for (const id of opened.own) own.add(id);
    const read = readClientServers(client, file, opened, place);
    warnings.push(...read.warnings, ...read.problems.map(leftOut));
    const fresh = read.servers.filter((spec) => {
      const earlier = taken.get(spec.id);
      if (earlier === undefined) taken.set(spec.id, spec);
      else if (!isSameEntry(earlier, spec)) warnings.push(hidden(spec, earlier));
      return earlier === undefined;
    });
    layers.push({ file: file.path, servers: fresh });
  }
  return { layers, warnings, broken, own: [...own], files: [...new Set(all.map(({ path }) => path))] };
}

/** As opposed to what the user keeps about a project. */
export function isOfProject({ scope, projectKey }: ClientFile): boolean {
  return scope === "project" && projectKey === undefined;
}

/** What the user has for this project alone wins over what the project brings, and that over what the user has anywhere. */
function rankOf({ scope, projectKey }: ClientFile): number {
  if (scope === "user") return 2;
  return projectKey === undefined ? 1 : 0;
}

function leftOut(problem: Diagnostic): Diagnostic {
  return asWarning({ ...problem, message: `${problem.message}; this server is skipped` });
}

function hidden(spec: ServerSpec, by: ServerSpec): Diagnostic {
  const message = `the server ${JSON.stringify(spec.id)} is also in ${by.origin.file}, which counts`;
  const place = { file: spec.origin.file, line: 0, column: 0, path: spec.id };
  return { severity: "warning", code: "duplicate_id", ...place, message };
}

function isSameEntry(a: ServerSpec, b: ServerSpec): boolean {
  const entryOf = ({ origin: _origin, baseDir: _baseDir, ...entry }: ServerSpec): object => entry;
  return isDeepStrictEqual(entryOf(a), entryOf(b));
}
