/** MCP's elicitation at a terminal: a form field by field, or an address to open. Gives what the protocol wants as the answer. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { coerceText, Misfit } from "../arguments/coerce.ts";

export interface Asker {
  line(prompt: string): Promise<string>;
  note(text: string): void;
}

/** The address is never opened by itself: a server could send anybody anywhere. */
export async function visitPage(url: string, asker: Asker): Promise<JsonObject> {
  asker.note(`  ${url}`);
  const typed = await asker.line("Open it yourself if you trust it, then press return; n declines: ");
  return { action: /^n/i.test(typed) ? "decline" : "accept" };
}

/** What is left empty is left out, or declines the whole where it is required. */
export async function fillForm(schema: JsonObject, asker: Asker): Promise<JsonObject> {
  const fields = Object.entries(isJsonObject(schema["properties"]) ? schema["properties"] : {});
  const required: unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  if (fields.length === 0) {
    return { action: /^y(es)?$/i.test(await asker.line("Accept? [y]es, [N]o: ")) ? "accept" : "decline" };
  }
  const content: JsonObject = {};
  for (const [name, described] of fields) {
    const field = isJsonObject(described) ? described : {};
    const value = await fillField(labelOf(name, field, required.includes(name)), field, asker);
    if (value !== undefined) content[name] = value;
    else if (required.includes(name)) return { action: "decline" };
  }
  return { action: "accept", content };
}

/** Undefined for nothing. */
async function fillField(label: string, field: JsonObject, asker: Asker): Promise<unknown> {
  for (;;) {
    const typed = await asker.line(`${label}: `);
    if (typed === "") return field["default"];
    try {
      return coerceText(typed, { schema: field, root: field });
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      asker.note(`  ${error.message}`);
    }
  }
}

function labelOf(name: string, field: JsonObject, isRequired: boolean): string {
  const title = typeof field["title"] === "string" ? field["title"] : name;
  const choices = Array.isArray(field["enum"]) ? ` (${field["enum"].map(String).join(", ")})` : "";
  const preset = field["default"] === undefined ? "" : ` [${JSON.stringify(field["default"])}]`;
  return `${title}${choices}${preset}${isRequired && preset === "" ? ", empty declines" : ""}`;
}
