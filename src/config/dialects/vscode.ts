/** VS Code: `servers` and `inputs` of an mcp.json, or the same under `mcp` in a settings.json. */
import { vscodeCage } from "../../clients/vscode-cage.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ConfigPath } from "../config-path.ts";
import { workspaceOf } from "./claude.ts";
import type { DialectRead, EntryReader } from "./entry.ts";
import { expandVariables } from "./variables.ts";
import { VscodeInputs } from "./vscode-inputs.ts";

export function readVscode(value: JsonObject, reader: EntryReader): DialectRead {
  const inSettings = isJsonObject(value["mcp"]) ? value["mcp"] : undefined;
  const root = inSettings ?? value;
  const path: ConfigPath = inSettings === undefined ? [] : ["mcp"];
  const servers = isJsonObject(root["servers"]) ? root["servers"] : {};
  const inputs = new VscodeInputs(root["inputs"], [...path, "inputs"], reader);
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
  if (sandboxEnabled === true) {
    const { sandbox: cage, narrower } = vscodeCage(sandbox);
    entry["sandbox"] = cage;
    const message = `the sandbox becomes bubblewrap here: ${narrower.join("; ")}`;
    reader.warn([...at, "sandboxEnabled"], "adapted", message);
  }
  // VS Code tries Streamable HTTP and then SSE for it, which is what no transport means here.
  if (entry["type"] === "http") delete entry["type"];
  if (typeof entry["command"] === "string" && entry["cwd"] === undefined) entry["cwd"] = workspaceOf(reader.baseDir);
  return entry;
}
