/** `${input:id}` of VS Code, which stands for what VS Code asks its user. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ConfigPath } from "../config-path.ts";
import { variableForInput } from "./variables.ts";

interface Warns {
  warn(path: ConfigPath, code: "input", message: string): void;
}

/** VS Code asks the user for inputs and keeps them; here each becomes an environment variable to set. */
export class VscodeInputs {
  readonly #known = new Map<string, { index: number; input: JsonObject }>();
  readonly #told = new Set<string>();
  readonly #path: ConfigPath;
  readonly #reader: Warns;

  constructor(inputs: unknown, path: ConfigPath, reader: Warns) {
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
