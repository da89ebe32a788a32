/** The every-field server as an upstream, and as something to talk to directly. */
import { resolve } from "node:path";
import type { Era } from "../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { type HttpFixture, serveHttp } from "../fixtures/every-field/serve-http.ts";
import { LineChannel } from "./channels.ts";

const program = resolve(import.meta.dirname, "../fixtures/every-field-server.ts");

export function everyFieldStdio(era: Era | "both" = "both"): ServerEntryInput {
  return { command: process.execPath, args: [program, "--era", era] };
}

export function directStdio(era: Era): LineChannel {
  return LineChannel.spawn(process.execPath, [program, "--era", era]);
}

export type Transport = "stdio" | "http";

export interface Upstream extends AsyncDisposable {
  readonly entry: ServerEntryInput;
  /** In this process, so that a test can look into it; undefined over stdio. */
  readonly fixture?: HttpFixture;
}

export async function everyFieldUpstream(transport: Transport, era: Era | "both" = "both"): Promise<Upstream> {
  if (transport === "stdio") return { entry: everyFieldStdio(era), async [Symbol.asyncDispose]() {} };
  const fixture = await serveHttp(era);
  return { entry: { url: fixture.url }, fixture, [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose]() };
}
