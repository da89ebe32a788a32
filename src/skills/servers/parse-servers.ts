/**
 * `requires-mcp-servers`: which MCP servers a skill needs and how to get them. Authors write it in many ways; all that can be
 * understood is, and the rest is a warning. Nothing here throws.
 */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { RequiredServer } from "../../model/skill.ts";
import { type FieldPath, Fields, type Warn, warnOfType } from "./fields.ts";
import { beginsCommandLine } from "./launch-words.ts";
import { parsePackage } from "./package-reference.ts";
import { readServer } from "./read-server.ts";
import { wellKnownByPackage } from "./well-known.ts";

/** One server as an object, whatever form it was written in. */
interface Item {
  readonly entry: JsonObject;
  readonly path: FieldPath;
}

/** Keys that say that an object is one server, and no map of servers by name. */
const SERVER_KEYS = [
  ...["name", "id", "server", "package", "npm", "pypi", "command", "cmd", "url", "serverUrl", "httpUrl"],
  ...["configTemplate", "template", "docker", "stdio"],
];

/** Keys that tell more about a server that is named by another key: `- files: "@scope/package"`, then `purpose: …`. */
const MORE_KEYS = new Set([
  ...["description", "purpose", "reason", "args", "arguments", "env", "environment", "cwd", "headers"],
  ...["parameters", "params", "transport", "type"],
]);

/** `warn` gets the path below the key `requires-mcp-servers`. */
export function parseRequiredServers(value: unknown, warn: Warn): RequiredServer[] {
  const servers = new Map<string, RequiredServer>();
  for (const { entry, path } of itemsOf(value, warn)) {
    const server = readServer(entry, path, warn);
    if (server === undefined) continue;
    if (servers.has(server.name))
      warn("DUPLICATE_SERVER", `The server ${JSON.stringify(server.name)} is listed twice; the first counts.`, path);
    else servers.set(server.name, server);
  }
  return [...servers.values()];
}

function itemsOf(value: unknown, warn: Warn): Item[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "string") {
    const texts = value.includes("://") ? [value] : value.split(",");
    return texts.filter((text) => text.trim() !== "").map((text) => ({ entry: fromText(text), path: [] }));
  }
  if (isJsonObject(value)) return fromMap(value, [], warn);
  if (!Array.isArray(value)) {
    warnOfType({ value, path: [] }, "a list of servers", warn);
    return [];
  }
  return value.flatMap((item: unknown, index): Item[] => {
    if (typeof item === "string" && item.trim() !== "") return [{ entry: fromText(item), path: [index] }];
    if (isJsonObject(item) && Object.keys(item).length > 0) return fromMap(item, [index], warn);
    warnOfType({ value: item, path: [index] }, "a server", warn);
    return [];
  });
}

/** One server with its keys, or servers by name. */
function fromMap(map: JsonObject, path: FieldPath, warn: Warn): Item[] {
  const named = Object.entries(map).filter(([key]) => !MORE_KEYS.has(key));
  if (named.length === 0 || new Fields(map, path).has(...SERVER_KEYS)) return [{ entry: map, path }];
  const more = named.length === 1 ? Object.fromEntries(Object.entries(map).filter(([key]) => MORE_KEYS.has(key))) : {};
  const entries = named.length === 1 ? named : Object.entries(map);
  return entries.flatMap(([name, value]): Item[] => {
    const at = Object.keys(more).length === 0 ? [...path, name] : path;
    if (value === null || value === true || value === "") return [{ entry: { ...more, name }, path: at }];
    if (typeof value === "string") return [{ entry: { ...fromText(value, "package"), ...more, name }, path: at }];
    if (isJsonObject(value)) return [{ entry: { ...more, ...value, name }, path: at }];
    warnOfType({ value, path: at }, "a package or a server", warn);
    return [];
  });
}

/** A text alone is an address, a command line, a package, a sentence that describes, or what `otherwise` says. */
function fromText(written: string, otherwise: "name" | "package" = "name"): JsonObject {
  const text = written.trim();
  if (/^https?:\/\//i.test(text)) return { url: text };
  const reference = parsePackage(text);
  if (reference !== undefined) {
    const isPlain = /^[^@:\s]+$/.test(text);
    if (!isPlain || otherwise === "package" || wellKnownByPackage(reference) !== undefined) return { package: text };
  }
  const words = text.split(/\s+/);
  if (words.length === 1) return { name: text };
  return beginsCommandLine(words[0] ?? "") ? { command: words } : { description: text };
}
