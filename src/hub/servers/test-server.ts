/** Connects once with an entry that is not saved: no catalog, no pins, no policy, and its program is ended afterwards. */
import type { OutputOf } from "../../contract/operations.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { Session } from "../../sessions/session.ts";
import { Connection } from "../../upstream/connection.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { InMemoryEras } from "../../upstream/era-memory.ts";
import { StderrLog } from "../../upstream/stdio/stderr-log.ts";

export type TestedServer = OutputOf<"testServer">;

/** @param deps Those of the hub's own connections. */
export async function testServer(
  spec: ServerSpec,
  deps: ConnectionDeps,
  signal: AbortSignal | undefined,
): Promise<TestedServer> {
  const stderr = new StderrLog();
  const session = new Session({ door: "test" });
  const { clock, env, pids, redactor, secrets, oauth, clientVersion } = deps;
  const connection = new Connection(
    { ...spec, enabled: true, restart: false },
    {
      clock,
      env,
      pids,
      redactor,
      clientVersion,
      stderr,
      hubSession: session,
      offers: {},
      eras: new InMemoryEras(),
      graceMs: 0,
      ...(secrets === undefined ? {} : { secrets }),
      ...(oauth === undefined ? {} : { oauth }),
    },
  );
  try {
    const end = await firstOf(connection.connect(), spec.timeout, clock, signal);
    const info = connection.info();
    const ok = end === "connected" && info.status === "connected";
    const tools = connection.definitions().tools.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
    return {
      ok,
      tools: ok ? tools : [],
      serverVersion: info.serverVersion,
      error: ok ? null : (info.lastError ?? reasonOf(end, spec.timeout)),
      ...(info.hint === undefined ? {} : { hint: info.hint }),
      stderr: stderr.lines(spec.id).map(redactor.mask),
    };
  } finally {
    await connection.close();
    session.close();
  }
}

type End = "connected" | "timeout" | "cancelled";

async function firstOf(
  connecting: Promise<void>,
  timeoutMs: number,
  clock: ConnectionDeps["clock"],
  signal: AbortSignal | undefined,
): Promise<End> {
  let release = (): void => {};
  const over = new Promise<End>((resolve) => {
    const stop = clock.after(timeoutMs, () => resolve("timeout"));
    const cancel = (): void => resolve("cancelled");
    if (signal?.aborted === true) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    release = () => {
      stop();
      signal?.removeEventListener("abort", cancel);
    };
  });
  try {
    return await Promise.race([connecting.then((): End => "connected"), over]);
  } finally {
    release();
  }
}

function reasonOf(end: End, timeoutMs: number): string {
  return end === "cancelled" ? "the test was given up" : `not connected within ${timeoutMs} ms`;
}
