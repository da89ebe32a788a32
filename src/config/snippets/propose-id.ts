/** A short name for a server that has none, from what it is started with. */
import type { JsonObject } from "../../model/json.ts";
import { ServerIdSchema } from "../../model/server-spec.ts";

/** Words that say nothing about which server it is. */
const GENERIC = new Set([
  "",
  "app",
  "bin",
  "build",
  "cli",
  "cmd",
  "com",
  "dist",
  "http",
  "index",
  "lib",
  "main",
  "mcp",
  "out",
  "remote",
  "run",
  "server",
  "src",
  "sse",
  "start",
  "stdio",
  "www",
  "api",
]);
const LAUNCHERS =
  /^(?:npx|bunx|uvx|pipx|pnpx|npm|pnpm|yarn|bun|deno|node|python[\d.]*|uv|tsx|ts-node|docker|podman|sh|bash|cmd|java|go|cargo|ruby|php|dotnet)(?:\.exe|\.cmd)?$/i;
/** Words that follow a launcher and are no package. */
const VERBS = new Set(["run", "exec", "dlx", "x", "tool", "create", "-m", "/c", "--"]);
/** Options of launchers that take a value. */
const WITH_VALUE = new Set([
  "-e",
  "--env",
  "-v",
  "--volume",
  "-p",
  "--name",
  "--mount",
  "--network",
  "--from",
  "--with",
  "--directory",
]);

export function proposeId(entry: JsonObject, taken: ReadonlySet<string>): string {
  const url = textOf(entry, "url");
  const named = url === undefined ? nameOfCommand(entry) : nameOfAddress(url);
  const plain = named
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, 40);
  const base = ServerIdSchema.safeParse(plain).success ? plain : "server";
  let id = base;
  for (let count = 2; taken.has(id); count++) id = `${base}-${count}`;
  return id;
}

function nameOfAddress(url: string): string {
  if (!URL.canParse(url)) return "server";
  const { hostname, pathname } = new URL(url);
  if (/^[\d.]+$|:|^localhost$/.test(hostname)) return lastTelling(pathname.split("/")) ?? "local-server";
  const labels = hostname.split(".").slice(0, -1);
  return labels.findLast((label) => !GENERIC.has(label)) ?? lastTelling(pathname.split("/")) ?? "server";
}

function nameOfCommand(entry: JsonObject): string {
  const command = textOf(entry, "command") ?? "";
  const args = Array.isArray(entry["args"]) ? entry["args"].filter((each) => typeof each === "string") : [];
  const program = command.split(/[/\\]/).at(-1) ?? "";
  if (!LAUNCHERS.test(program)) return shortName(program);
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (WITH_VALUE.has(word)) at += 1;
    else if (!word.startsWith("-") && !VERBS.has(word)) return shortName(word);
  }
  return shortName(program);
}

/** `@modelcontextprotocol/server-filesystem@1.0` as `filesystem`, `mcp/github:latest` as `github`. */
function shortName(word: string): string {
  const path = word.replace(/^(?:npm|jsr|git\+https?):/, "").replace(/\.(?:[cm]?[jt]s|py|exe|cmd|jar|rb|php)$/i, "");
  const versionless = path.replace(/(?!^)@[^/@]*$/, "").replace(/:[\w.-]+$/, "");
  const segments = versionless.split(/[/\\]/).map(bare);
  return lastTelling(segments) ?? "server";
}

function bare(segment: string): string {
  const name = segment.replaceAll("_", "-").replace(/^@/, "");
  return name.replace(/^(?:mcp-server-|server-|mcp-)/i, "").replace(/(?:-mcp-server|-mcp|-server)$/i, "");
}

function lastTelling(segments: readonly string[]): string | undefined {
  return segments.findLast((segment) => !GENERIC.has(segment.toLowerCase()) && /[A-Za-z0-9]/.test(segment));
}

function textOf(entry: JsonObject, key: string): string | undefined {
  const value = entry[key];
  return typeof value === "string" ? value : undefined;
}
