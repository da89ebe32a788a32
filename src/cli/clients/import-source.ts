/** The servers that `import` brings in, of a client or of any file that has some. */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { clientById } from "../../clients/clients.ts";
import type { AgentClient, ClientFile } from "../../clients/client.ts";
import { isOfProject, serversOfClient } from "../../config/client-servers.ts";
import { type Diagnostic, invalidConfig, renderDiagnostic } from "../../config/diagnostics.ts";
import { readDialect } from "../../config/dialects/detect.ts";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { parseConfigText } from "../../config/read-document.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Invocation } from "../command.ts";
import { findClient, placeOf, scopeOf } from "./find-client.ts";

export interface ImportSource {
  /** A client's id, or the path of a file. */
  readonly name: string;
  /** Files that were read. */
  readonly files: readonly string[];
  readonly servers: readonly ServerSpec[];
  /** Ids of entries that start Toolcrib itself. */
  readonly own: readonly string[];
}

/** Entries that cannot be read are told of and left out; a source without any that can is an error. */
export async function readSource(invocation: Invocation, named: string): Promise<ImportSource> {
  const client = clientById(named);
  if (client !== undefined) return readClient(invocation, client);
  const file = resolve(invocation.cwd, expandTilde(named, userHome(invocation.env)));
  if (existsSync(file)) return readFile(invocation, file);
  // A plain word may be a mistyped client.
  if (/^[\w -]+$/.test(named)) throw notFound(named, file);
  throw new ToolcribError("not_found", `There is no file ${file}.`);
}

function notFound(named: string, file: string): ToolcribError {
  try {
    findClient(named);
  } catch (error) {
    if (error instanceof ToolcribError) {
      return new ToolcribError("not_found", `There is no client ${JSON.stringify(named)} and no file ${file}.`, {
        hint: error.hint,
      });
    }
  }
  return new ToolcribError("not_found", `There is no file ${file}.`);
}

async function readClient(invocation: Invocation, client: AgentClient): Promise<ImportSource> {
  const place = placeOf(invocation);
  const wanted = scopeOf(invocation);
  const inFolder = client.files(place).filter(isOfProject);
  // A folder that was cloned must not get its servers into the user's config by the way.
  const isWanted = (file: ClientFile): boolean => wanted === "project" || !isOfProject(file);
  const scoped: AgentClient = { ...client, files: (at) => client.files(at).filter(isWanted) };
  const { layers, warnings, broken, own, files } = await serversOfClient(scoped, place);
  for (const { path } of wanted === "user" ? inFolder.filter((file) => existsSync(file.path)) : []) {
    invocation.out.note(`Not looked at, because it belongs to this folder: ${path}. --scope project imports it.`);
  }
  const servers = layers.flatMap((layer) => layer.servers);
  if (layers.length === 0 && broken.length > 0) throw invalidConfig(broken);
  if (layers.length === 0) {
    throw new ToolcribError("not_found", `${client.name} has no config file here.`, {
      hint: `Looked for ${files.join(", ")}`,
    });
  }
  tell(invocation, [...warnings, ...broken]);
  if (own.length > 0) invocation.out.note(`Left out, as it is Toolcrib itself: ${own.join(", ")}`);
  if (servers.length === 0 && own.length === 0) {
    throw new ToolcribError("not_found", `${client.name} has no MCP servers.`, {
      hint: `Read ${layers.map(({ file }) => file).join(", ")}`,
    });
  }
  return { name: client.id, files: layers.map(({ file }) => file), servers, own };
}

function readFile(invocation: Invocation, file: string): ImportSource {
  const { out, env } = invocation;
  const document = parseConfigText(file, readFileSync(file, "utf8"));
  if (document.errors.length > 0) throw invalidConfig(document.errors);
  const { servers, roleServers, warnings, problems, own } = readDialect(document.value, {
    file,
    document,
    userHome: userHome(env),
  });
  if (servers.length === 0 && problems.length > 0) throw invalidConfig(problems);
  tell(invocation, [...document.warnings, ...warnings, ...problems]);
  for (const [role, theirs] of Object.entries(roleServers)) {
    out.warn(`${file}: servers of the agent ${role} alone are not imported: ${theirs.map(({ id }) => id).join(", ")}`);
  }
  if (servers.length === 0 && own.length === 0) {
    throw new ToolcribError("not_found", `${file} has no MCP servers.`);
  }
  return { name: file, files: [file], servers, own };
}

/** Credentials are told of later, for the servers that are really brought in. */
function tell({ out }: Invocation, diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    if (diagnostic.code !== "plain_credential") out.warn(renderDiagnostic(diagnostic));
  }
}
