/** Other files that bring servers: the `import` list, and the home's etc/mcp-servers.json. */
import { join, resolve } from "node:path";
import { CLIENT_IDS, type ClientId } from "../clients/client.ts";
import type { Config } from "../model/config.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { asWarning, type Diagnostic } from "./diagnostics.ts";
import { readDialect } from "./dialects/detect.ts";
import type { Document } from "./document.ts";
import { withImportedCage } from "./effective-cage.ts";
import { expandTilde } from "./find-config.ts";
import { parseConfigText } from "./read-document.ts";
import { roleServers } from "./role-servers.ts";

/** The servers of one file. */
export interface Layer {
  readonly file: string;
  readonly servers: readonly ServerSpec[];
  /** Toolcrib's own, not another program's or a project's. */
  readonly own?: boolean;
}

interface ImportOptions {
  readonly document: Document;
  /** The importing file. */
  readonly file: string | null;
  readonly baseDir: string;
  /** null for a config given in code: it names all it wants. */
  readonly home: string | null;
  readonly list: readonly string[];
  readonly userHome: string;
  readonly env: NodeJS.ProcessEnv;
  /** Reads what a list names, apart from files that are the user's own at another program. */
  readonly read: ReadText;
}

/** Rejects with an error that has a `code`, as Node's own does. */
export type ReadText = (file: string) => Promise<string>;

interface Imports {
  /** In the order in which they win. */
  readonly layers: Layer[];
  readonly warnings: Diagnostic[];
  /** All that were looked for, there or not. */
  readonly files: string[];
}

/** A file that is missing or broken is a warning: it belongs to another program and must not stop this one. */
export async function readImports(options: ImportOptions): Promise<Imports> {
  const { document, baseDir, home, list, userHome } = options;
  const imports: Imports = { layers: [], warnings: [], files: [] };
  const seen = new Set(options.file === null ? [] : [options.file]);
  for (const [index, item] of list.entries()) {
    const path = ["import", index];
    if (isClientId(item)) {
      const reason = await readClient(item, options, seen, imports);
      if (reason !== undefined) {
        const message = `${reason}; nothing is imported from it`;
        imports.warnings.push(document.report(path, { severity: "warning", code: "missing_import", message }));
      }
      continue;
    }
    const file = resolve(baseDir, expandTilde(item, userHome));
    if (seen.has(file)) continue;
    seen.add(file);
    imports.files.push(file);
    const reason = await readLayer(file, options, imports);
    if (reason !== undefined) {
      const message = `the file ${file} ${reason}; nothing is imported from it`;
      imports.warnings.push(document.report(path, { severity: "warning", code: "missing_import", message }));
    }
  }
  const etc = home === null ? null : join(home, "etc", "mcp-servers.json");
  if (etc === null || seen.has(etc)) return imports;
  imports.files.push(etc);
  const reason = await readLayer(etc, options, imports, true);
  if (reason !== undefined && reason !== MISSING) {
    const message = `the file ${reason}; it is skipped`;
    imports.warnings.push({
      severity: "warning",
      code: "missing_import",
      file: etc,
      line: 0,
      column: 0,
      path: "",
      message,
    });
  }
  return imports;
}

function isClientId(item: string): item is ClientId {
  return CLIENT_IDS.some((id) => id === item);
}

/** Why there is nothing to read, if so. */
async function readClient(
  id: ClientId,
  { baseDir, env, read }: ImportOptions,
  seen: Set<string>,
  imports: Imports,
): Promise<string | undefined> {
  // Loaded when a config names a client: readers of YAML and TOML are large.
  const [{ clientById }, { isInstalled, serversOfClient, thisPlace }] = await Promise.all([
    import("../clients/clients.ts"),
    import("./client-servers.ts"),
  ]);
  const client = clientById(id);
  if (client === undefined) return `there is no client ${id}`;
  const place = thisPlace(env, baseDir);
  const { layers, warnings, broken, files } = await serversOfClient(client, place, { readProject: read });
  imports.layers.push(...layers.filter(({ file }) => !seen.has(file)));
  imports.warnings.push(...warnings, ...broken.map((problem) => skipped(problem, "the file is skipped")));
  imports.files.push(...files.filter((file) => !seen.has(file)));
  for (const file of files) seen.add(file);
  return isInstalled(client, place) || layers.length > 0 ? undefined : `${client.name} is not installed here`;
}

const MISSING = "does not exist";

/** Why the file cannot be read, if it cannot. */
async function readLayer(
  file: string,
  { userHome, read: readText }: Pick<ImportOptions, "userHome" | "read">,
  imports: Imports,
  own = false,
): Promise<string | undefined> {
  let text: string;
  try {
    text = await readText(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    return code === "ENOENT" ? MISSING : `cannot be read (${code})`;
  }
  const document = parseConfigText(file, text);
  imports.warnings.push(...document.warnings);
  if (document.errors.length > 0) {
    imports.warnings.push(...document.errors.map((error) => skipped(error, "the file is skipped")));
    return undefined;
  }
  const value = document.value === undefined ? {} : document.value;
  const read = readDialect(value, { file, document, userHome });
  imports.layers.push({ file, servers: [...read.servers, ...roleServers(read.roleServers)], own });
  imports.warnings.push(
    ...read.warnings,
    ...read.problems.map((problem) => skipped(problem, "this server is skipped")),
  );
  return undefined;
}

function skipped(problem: Diagnostic, what: string): Diagnostic {
  return asWarning({ ...problem, message: `${problem.message}; ${what}` });
}

/** The layer with the cages that this config gives it. An image that is then nowhere to be run is left out. */
export function withoutSay({ file, servers }: Layer, config: Config, warnings: Diagnostic[]): Layer {
  const specs = servers.flatMap((given) => {
    const { spec, ignored } = withImportedCage(given, { config });
    if (!ignored) return [spec];
    const isLost = spec.command === undefined && spec.url === undefined;
    const message = `sandbox of an imported server is not used, because this config has one for all${
      isLost ? "; without it this server cannot be started and is left out" : ""
    }`;
    const path = `${given.id}.sandbox`;
    warnings.push({ severity: "warning", code: "not_read", file, line: 0, column: 0, path, message });
    return isLost ? [] : [spec];
  });
  return { file, servers: specs };
}

/** Earlier layers win. */
export function mergeLayers(layers: readonly Layer[], warnings: Diagnostic[]): ServerSpec[] {
  const byId = new Map<string, ServerSpec>();
  for (const { file, servers } of layers) {
    for (const spec of servers) {
      const earlier = byId.get(spec.id);
      if (earlier === undefined) {
        byId.set(spec.id, spec);
        continue;
      }
      const message = `the server ${JSON.stringify(spec.id)} is also in ${earlier.origin.file}, which counts`;
      warnings.push(
        asWarning({ severity: "warning", code: "duplicate_id", file, line: 0, column: 0, path: spec.id, message }),
      );
    }
  }
  return [...byId.values()];
}
