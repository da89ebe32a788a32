/** Recognises entries that start Toolcrib itself: a hub that imported one would start itself without end. */
import { posix } from "node:path";
import type { JsonObject } from "../../model/json.ts";

const OWN_PROGRAM = /^toolcrib(?:\.(?:js|cmd|ps1|exe)|@[\w.^~-]+)?$/i;
/** What may stand before the program that is really meant. */
const LAUNCHER = /^(?:-.*|\/c|env|cmd|node|npx|npm|exec|x|pnpm|yarn|dlx|bun|bunx)(?:\.exe|\.cmd)?$/i;

/** The entry is in the words of `AgentClient.read`. */
export function startsToolcrib(id: string, entry: JsonObject): boolean {
  const [program, ...rest] = wordsOf(entry)
    .filter((word) => !LAUNCHER.test(word))
    .map((word) => posix.basename(word.replaceAll("\\", "/")))
    .filter((word) => !LAUNCHER.test(word));
  if (program !== undefined) return OWN_PROGRAM.test(program) && rest.includes("mcp");
  return id === "toolcrib" && ["url", "serverUrl", "httpUrl"].some((key) => typeof entry[key] === "string");
}

function wordsOf({ command, args }: JsonObject): string[] {
  const parts: unknown[] = [...(Array.isArray(command) ? command : [command]), ...(Array.isArray(args) ? args : [])];
  return parts.filter((part) => typeof part === "string");
}
