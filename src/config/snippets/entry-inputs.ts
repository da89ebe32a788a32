/** Editors ask their users for `${input:id}`; here each becomes a variable to set, in the text around it. */
import { isJsonObject } from "../../model/json.ts";
import { expandVariables } from "../dialects/variables.ts";
import { VscodeInputs } from "../dialects/vscode-inputs.ts";
import type { NamedEntry } from "./command-entry.ts";

/** @param listed The `inputs` beside the servers, which say what each is. */
export function withInputs(named: NamedEntry, listed?: unknown): NamedEntry {
  const warnings: string[] = [];
  const inputs = new VscodeInputs(listed, ["inputs"], { warn: (_path, _code, message) => void warnings.push(message) });
  const entry = expandVariables(named.entry, { input: (id) => inputs.reference(id) });
  return isJsonObject(entry) && warnings.length > 0 ? { ...named, entry, warnings } : named;
}
