/** Toolcrib as a user starts it, with guard, policy, pins and audit as they are by default; only its limits are raised. */
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Era } from "../client/protocol.ts";
import { freePort, startNode } from "../processes.ts";
import { type Load, mcpServers, type Running, scratch, type Subject } from "./subject.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PLENTY = 1_000_000_000;

export function toolcrib(era: Era = "legacy"): Subject {
  return {
    name: era === "legacy" ? "Toolcrib" : "Toolcrib, 2026-07-28",
    kind: "toolcrib",
    can: () => true,
    start: (load, urls) => startToolcrib(load, urls, { era }),
  };
}

/** Another build, to see in one run what a change has gained. @param main Its `cli/main.cjs`. */
export function otherToolcrib(main: string): Subject {
  return {
    name: "Toolcrib, other build",
    kind: "other",
    can: () => true,
    start: (load, urls) => startToolcrib(load, urls, { entry: resolve(main) }),
  };
}

export interface ToolcribRunning extends Running {
  readonly url: string;
  readonly home: string;
}

export interface ToolcribOptions {
  readonly era?: Era;
  /** Script to run instead of this package's command. */
  readonly entry?: string;
  /** Further entries of `mcpServers`. */
  readonly servers?: Readonly<Record<string, object>>;
}

export async function startToolcrib(
  load: Load,
  urls: readonly string[],
  { era = "legacy", entry = ownEntry(), servers = {} }: ToolcribOptions = {},
): Promise<ToolcribRunning> {
  const port = await freePort();
  const folder = scratch();
  const config = join(folder.dir, "toolcrib.json");
  const limits = { requestsPerMinute: PLENTY, sessions: PLENTY, connections: PLENTY, streams: PLENTY };
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { ...mcpServers(load, urls), ...servers }, http: { port, limits } }),
  );
  const home = join(folder.dir, "home");
  const started = startNode([entry, "serve", "--config", config], {
    cwd: folder.dir,
    probe: load.probe,
    env: {
      TOOLCRIB_HOME: home,
      TOOLCRIB_LIMITS_CALLS_PER_MINUTE: String(PLENTY),
      TOOLCRIB_LIMITS_CONCURRENCY: "10000",
      TOOLCRIB_LIMITS_SERVERS: "1000",
    },
  });
  const url = `http://127.0.0.1:${port}/mcp`;
  return {
    url,
    home,
    probe: load.probe,
    endpoint: { kind: "streamable", url, era },
    process: started,
    async stop() {
      await started.stop();
      folder.remove();
    },
  };
}

/** The command of the package; from source where nothing is built. `TOOLCRIB_BENCH_ENTRY` names another script. */
function ownEntry(): string {
  const given = process.env["TOOLCRIB_BENCH_ENTRY"];
  if (given !== undefined) return resolve(given);
  return existsSync(join(ROOT, "dist/cli/main.cjs")) ? join(ROOT, "bin/toolcrib.js") : join(ROOT, "src/cli/main.ts");
}
