/** The variables that editors expand in server entries, as Toolcrib's references or as the text they stand for. */
import { basename, sep } from "node:path";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

interface Variables {
  /** Left as they are where there is none. */
  readonly workspaceFolder?: string;
  readonly userHome?: string;
  /** The reference for `${input:id}`; undefined leaves it, and connecting then fails by its name. */
  readonly input?: (id: string) => string | undefined;
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
  "headers",
  "transport",
  "sandbox",
];

/** Replaces variables in the keys of an entry that programs expand; the rest stays as it is. */
export function expandVariables(entry: unknown, variables: Variables): unknown {
  if (!isJsonObject(entry)) return entry;
  const expanded: JsonObject = { ...entry };
  for (const key of EXPANDED) if (Object.hasOwn(entry, key)) expanded[key] = expandAll(entry[key], variables);
  return expanded;
}

function expandAll(value: unknown, variables: Variables): unknown {
  if (typeof value === "string") return expandText(value, variables);
  if (Array.isArray(value)) return value.map((item) => expandAll(item, variables));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expandAll(item, variables)]));
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
