/** Connects once with an entry that is not saved: no catalog, no pins, no policy, and its program is ended afterwards. */
import type { OutputOf } from "../../contract/operations.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { Session } from "../../sessions/session.ts";
import { ALL_CAPABILITIES } from "../../upstream/server-requests.ts";
import { Connection } from "../../upstream/connection.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { InMemoryEras } from "../../upstream/era-memory.ts";
import { openWire } from "../../upstream/link.ts";
import { StderrLog } from "../../upstream/stdio/stderr-log.ts";
import type { Wire } from "../../upstream/wire.ts";

export type TestedServer = OutputOf<"testServer">;

/** @param deps Those of the hub's own connections. */
export async function testServer(
  spec: ServerSpec,
  deps: ConnectionDeps,
  signal: AbortSignal | undefined,
): Promise<TestedServer> {
  const stderr = new StderrLog();
  const session = new Session({ door: "test" });
  const { clock, env, pids, redactor, secrets, oauth, clientVersion, sandboxes } = deps;
  const limit = new ConnectLimit(clock, spec.timeout);
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
      offers: ALL_CAPABILITIES,
      eras: new InMemoryEras(),
      graceMs: 0,
      secrets,
      oauth,
      sandboxes,
      openWire: (...request) => limit.startWhenReady((deps.openWire ?? openWire)(...request)),
    },
  );
  try {
    const end = await firstOf(connection.connect(), limit.over, signal);
    const info = connection.info();
    const ok = end === "connected" && info.status === "connected";
    const tools = connection.definitions().tools.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
    return {
      ok,
      tools: ok ? tools : [],
      serverVersion: info.serverVersion,
      error: ok ? null : (info.lastError ?? reasonOf(end, spec.timeout)),
      hint: info.hint,
      stderr: stderr.lines(spec.id).map(redactor.mask),
    };
  } finally {
    limit.stop();
    await connection.close();
    session.close();
  }
}

type End = "connected" | "timeout" | "cancelled";

/** The time that connecting may take, without that for what is made once, such as an image: see Wire.makeReady. */
class ConnectLimit {
  readonly #clock: ConnectionDeps["clock"];
  readonly #timeoutMs: number;
  readonly #over = Promise.withResolvers<"timeout">();
  #stop: () => void = () => {};

  constructor(clock: ConnectionDeps["clock"], timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#start();
  }

  get over(): Promise<"timeout"> {
    return this.#over.promise;
  }

  startWhenReady(wire: Wire): Wire {
    const makeReady = wire.makeReady?.bind(wire);
    if (makeReady === undefined) return wire;
    wire.makeReady = async (signal) => {
      this.stop();
      await makeReady(signal);
      this.#start();
    };
    return wire;
  }

  stop(): void {
    this.#stop();
  }

  #start(): void {
    this.#stop();
    this.#stop = this.#clock.after(this.#timeoutMs, () => this.#over.resolve("timeout"));
  }
}

async function firstOf(
  connecting: Promise<void>,
  late: Promise<"timeout">,
  signal: AbortSignal | undefined,
): Promise<End> {
  let release = (): void => {};
  const given = new Promise<End>((resolve) => {
    const cancel = (): void => resolve("cancelled");
    if (signal?.aborted === true) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    release = () => signal?.removeEventListener("abort", cancel);
  });
  try {
    return await Promise.race([connecting.then((): End => "connected"), late, given]);
  } finally {
    release();
  }
}

function reasonOf(end: End, timeoutMs: number): string {
  return end === "cancelled" ? "the test was given up" : `not connected within ${timeoutMs} ms`;
}
