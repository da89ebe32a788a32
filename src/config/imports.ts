/** Other files that bring servers: the `import` list, and the home's etc/mcp-servers.json. */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ServerSpec } from "../model/server-spec.ts";
import { asWarning, type Diagnostic } from "./diagnostics.ts";
import { readDialect } from "./dialects/detect.ts";
import type { Document } from "./document.ts";
import { expandTilde } from "./find-config.ts";
import { parseConfigText } from "./read-document.ts";
import { roleServers } from "./role-servers.ts";

/** Agent clients that a later version imports by name; until then the name must not be taken for a path. */
const CLIENT_NAMES = new Set([
  "claude-desktop",
  "claude-code",
  "cursor",
  "vscode",
  "windsurf",
  "cline",
  "zed",
  "codex",
  "gemini-cli",
  "opencode",
  "kiro",
  "junie",
  "goose",
  "lm-studio",
  "amp",
  "continue",
  "openclaw",
  "copilot-cli",
]);

/** The servers of one file. */
export interface Layer {
  readonly file: string;
  readonly servers: readonly ServerSpec[];
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
}

interface Imports {
  /** In the order in which they win. */
  readonly layers: Layer[];
  readonly problems: Diagnostic[];
  readonly warnings: Diagnostic[];
  /** All that were looked for, there or not. */
  readonly files: string[];
}

/** A file that is missing or broken is a warning: it belongs to another program and must not stop this one. */
export async function readImports(options: ImportOptions): Promise<Imports> {
  const { document, baseDir, home, list, userHome } = options;
  const imports: Imports = { layers: [], problems: [], warnings: [], files: [] };
  const seen = new Set(options.file === null ? [] : [options.file]);
  for (const [index, item] of list.entries()) {
    const path = ["import", index];
    if (CLIENT_NAMES.has(item)) {
      const message = "importing by client name is not built in this version";
      const hint = "give the path of its config file";
      imports.problems.push(document.report(path, { severity: "error", code: "not_built", message, hint }));
      continue;
    }
    const file = resolve(baseDir, expandTilde(item, userHome));
    if (seen.has(file)) continue;
    seen.add(file);
    imports.files.push(file);
    const reason = await readLayer(file, userHome, imports);
    if (reason !== undefined) {
      const message = `the file ${file} ${reason}; nothing is imported from it`;
      imports.warnings.push(document.report(path, { severity: "warning", code: "missing_import", message }));
    }
  }
  const etc = home === null ? null : join(home, "etc", "mcp-servers.json");
  if (etc === null || seen.has(etc)) return imports;
  imports.files.push(etc);
  const reason = await readLayer(etc, userHome, imports);
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

const MISSING = "does not exist";

/** Why the file cannot be read, if it cannot. */
async function readLayer(file: string, userHome: string, imports: Imports): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
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
  imports.layers.push({ file, servers: [...read.servers, ...roleServers(read.roleServers)] });
  imports.warnings.push(
    ...read.warnings,
    ...read.problems.map((problem) => skipped(problem, "this server is skipped")),
  );
  return undefined;
}

function skipped(problem: Diagnostic, what: string): Diagnostic {
  return asWarning({ ...problem, message: `${problem.message}; ${what}` });
}
