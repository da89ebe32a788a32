/** The variables that editors expand in server entries, as Toolcrib's references or as the text they stand for. */
import { basename, sep } from "node:path";
import { isJsonObject, type JsonObject, mapTexts } from "../model/json.ts";
import type { ConfigPath } from "./config-document.ts";

interface Variables {
  /** Left as they are where there is none. */
  readonly workspaceFolder?: string;
  readonly userHome?: string;
  /** The reference for `${input:id}`; undefined leaves it, and connecting then fails by its name. */
  readonly input?: ((id: string) => string | undefined) | undefined;
}

const EXPANDED = [
  "command",
  "args",
  "env",
  "environment",
  "cwd",
  "url",
  "serverUrl",
  "httpUrl",
  "baseUrl",
  "workingDir",
  "workingDirectory",
  "headers",
  "auth",
  "oauth",
  "transport",
  "sandbox",
];

/** Replaces variables in the keys of an entry that programs expand; the rest stays as it is. */
export function expandVariables(entry: JsonObject, variables: Variables): JsonObject {
  const expanded: JsonObject = { ...entry };
  const expand = (text: string): string => expandText(text, variables);
  for (const key of EXPANDED) if (Object.hasOwn(entry, key)) expanded[key] = mapTexts(entry[key], expand);
  return expanded;
}

function expandText(text: string, variables: Variables): string {
  return text.replace(/\$\{([^{}]{1,200})\}(?=(\w?))/g, (whole: string, inner: string, next: string) => {
    const [, kind, name = ""] = /^(env|input):(.+)$/.exec(inner) ?? [];
    if (kind === "env") return `\${${name}}`;
    if (kind === "input") {
      const reference = variables.input?.(name);
      if (reference === undefined) return whole;
      // `secret://env/NAME` would swallow a word character that follows.
      return next === "" ? reference : reference.replace(/^secret:\/\/env\/(\w+)$/, "${$1}");
    }
    switch (inner) {
      case "workspaceFolder":
        return variables.workspaceFolder ?? whole;
      case "workspaceFolderBasename":
        return variables.workspaceFolder === undefined ? whole : basename(variables.workspaceFolder);
      case "userHome":
        return variables.userHome ?? whole;
      case "pathSeparator":
      case "/":
        return sep;
      default:
        return whole;
    }
  });
}

/** `github-token` as `GITHUB_TOKEN`. */
export function variableForInput(id: string): string {
  const name = id
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase();
  return /^\d/.test(name) ? `_${name}` : name;
}

interface Warns {
  warn(path: ConfigPath, code: "input", message: string): void;
}

/** VS Code asks the user for inputs and keeps them; here each becomes an environment variable to set. */
export class VscodeInputs {
  readonly #known = new Map<string, { index: number; input: JsonObject }>();
  readonly #reported = new Set<string>();
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
    if (!this.#reported.has(id)) {
      this.#reported.add(id);
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
