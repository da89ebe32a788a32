/** The fixture as Toolcrib's upstream, in each way that a server can be reached. */
import { join } from "node:path";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { type Running, start } from "./processes.ts";

export const FIXTURE = join(import.meta.dirname, "..", "fixture-server.ts");
const START_MS = 30_000;

/** `http` and `stdio` speak both eras; Toolcrib takes the modern one over HTTP and the legacy one over stdio. */
export const UPSTREAMS = ["http", "http-legacy", "stdio", "stdio-modern"] as const;
export type Upstream = (typeof UPSTREAMS)[number];

export interface HttpFixture extends AsyncDisposable {
  readonly url: string;
}

export async function startFixture(era: "both" | "legacy" = "both"): Promise<HttpFixture> {
  const fixture: Running = start([FIXTURE, "http", "--era", era]);
  const url = await fixture.said(/http:\S+/, START_MS).catch(async (error: unknown) => {
    await fixture[Symbol.asyncDispose]();
    throw error;
  });
  return { url, [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose]() };
}

/** An entry for the config, and what has to run as long as it is used. */
export async function openUpstream(upstream: Upstream): Promise<{ entry: ServerEntryInput } & AsyncDisposable> {
  if (upstream === "stdio" || upstream === "stdio-modern") {
    const era = upstream === "stdio" ? "both" : "modern";
    const args = [FIXTURE, "stdio", "--era", era];
    return { entry: { command: process.execPath, args }, async [Symbol.asyncDispose]() {} };
  }
  const fixture = await startFixture(upstream === "http" ? "both" : "legacy");
  return { entry: { url: fixture.url }, [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose]() };
}
