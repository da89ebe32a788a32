/** Servers to write, with texts that are awkward in one format or another. */
import type { WrittenServer } from "../../src/clients/agent-client.ts";
import type { PathStep } from "../../src/files/edit/text-editor.ts";
import { isJsonObject } from "../../src/model/json.ts";

export const SERVERS: Readonly<Record<string, WrittenServer>> = {
  "crib-notes": { command: "notes-server", args: ["serve", "--config", "C:\\Users\\ada\\my config.json"] },
  "my.server 1": {
    command: "/opt/a b/run",
    args: ["--flag", "", "#x: y", 'say "hi"'],
    env: { LEVEL: "debug", N: "1" },
  },
  moved: { command: "node", args: ["server.js"], cwd: "/srv/app" },
  gateway: { url: "http://127.0.0.1:4700/mcp", transport: "http" },
  "far-away": {
    url: "https://x.test/mcp?a=b#c",
    transport: "http",
    headers: { "X-Team": "blue: green", "x-n": "007" },
  },
  events: { url: "https://x.test/sse", transport: "sse" },
};

/** A document that holds just that entry. */
export function documentOf(path: readonly PathStep[], entry: unknown): unknown {
  return path
    .toReversed()
    .reduce<unknown>(
      (inner, step) =>
        typeof step === "string"
          ? { [step]: inner }
          : [isJsonObject(inner) ? { [step.key]: step.is, ...inner } : inner],
      entry,
    );
}
