/** VS Code: `servers` and `inputs` of an mcp.json, or the same under `mcp` in a settings.json. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ConfigPath } from "../config-path.ts";
import { workspaceOf } from "./claude.ts";
import type { DialectRead, EntryReader } from "./entry.ts";
import { expandVariables, variableForInput } from "./variables.ts";

export function readVscode(value: JsonObject, reader: EntryReader): DialectRead {
  const inSettings = isJsonObject(value["mcp"]) ? value["mcp"] : undefined;
  const root = inSettings ?? value;
  const path: ConfigPath = inSettings === undefined ? [] : ["mcp"];
  const servers = isJsonObject(root["servers"]) ? root["servers"] : {};
  const inputs = new Inputs(root["inputs"], [...path, "inputs"], reader);
  const variables = {
    workspaceFolder: workspaceOf(reader.baseDir),
    userHome: reader.userHome,
    input: (id: string) => inputs.reference(id),
  };
  const prepare = (raw: unknown, at: ConfigPath): unknown => adapt(expandVariables(raw, variables), at, reader);
  return reader.finish(reader.readMap([...path, "servers"], servers, prepare));
}

function adapt(raw: unknown, at: ConfigPath, reader: EntryReader): unknown {
  if (!isJsonObject(raw)) return raw;
  const { envFile, sandbox, sandboxEnabled, ...entry } = raw;
  if (envFile !== undefined) {
    reader.warn([...at, "envFile"], "not_read", "envFile is not read", "name the variables in env, with references");
  }
  // Dropping it would start uncaged what its owner wanted caged.
  if (sandboxEnabled === true) {
    reader.refuse([...at, "sandboxEnabled"], "not_built", "sandboxEnabled is not built in this version: Sandboxes");
    return undefined;
  }
  if (sandbox !== undefined) reader.warn([...at, "sandbox"], "not_read", "sandbox is not read");
  // VS Code tries Streamable HTTP and then SSE for it, which is what no transport means here.
  if (entry["type"] === "http") delete entry["type"];
  if (typeof entry["command"] === "string" && entry["cwd"] === undefined) entry["cwd"] = workspaceOf(reader.baseDir);
  return entry;
}

/** VS Code asks the user for inputs and keeps them; here each becomes an environment variable to set. */
class Inputs {
  readonly #known = new Map<string, { index: number; input: JsonObject }>();
  readonly #told = new Set<string>();
  readonly #path: ConfigPath;
  readonly #reader: EntryReader;

  constructor(inputs: unknown, path: ConfigPath, reader: EntryReader) {
    this.#path = path;
    this.#reader = reader;
    for (const [index, input] of (Array.isArray(inputs) ? inputs : []).entries()) {
      if (isJsonObject(input) && typeof input["id"] === "string") this.#known.set(input["id"], { index, input });
    }
  }

  reference(id: string): string {
    const name = variableForInput(id);
    const known = this.#known.get(id);
    const fallback = known?.input["password"] === true ? undefined : known?.input["default"];
    if (!this.#told.has(id)) {
      this.#told.add(id);
      const what = known?.input["description"];
      const asked = typeof what === "string" ? ` (${what.slice(0, 120)})` : "";
      const at = known === undefined ? this.#path : [...this.#path, known.index];
      this.#reader.warn(
        at,
        "input",
        `VS Code asks for the input ${JSON.stringify(id)}${asked}; set the environment variable ${name}`,
      );
    }
    return typeof fallback === "string" && !/[{}]/.test(fallback) ? `\${${name}:-${fallback}}` : `secret://env/${name}`;
  }
}
