/** Connects once with an entry that is not saved: no catalog, no pins, no policy, and its program is ended afterwards. */
import { endsWithin } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { TestedServer } from "../../contract/server-schemas.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { Session } from "../../sessions/session.ts";
import { ALL_CAPABILITIES } from "../../upstream/server-requests.ts";
import { Connection } from "../../upstream/connection.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { InMemoryEras } from "../../upstream/era-memory.ts";
import { openWire } from "../../upstream/link.ts";
import { ServerLog } from "../../upstream/stdio/server-log.ts";
import type { Wire } from "../../upstream/wire.ts";

/** @param deps Those of the hub's own connections. */
export async function testServer(
  spec: ServerSpec,
  deps: ConnectionDeps,
  signal: AbortSignal | undefined,
): Promise<TestedServer> {
  const stderr = new ServerLog(deps.redactor.mask);
  const session = new Session({ door: "test" });
  const { clock, env, pids, redactor, secrets, oauth, clientVersion, sandboxes } = deps;
  const limit = new ConnectLimit(clock, spec.timeout);
  const connection = new Connection(
    { ...spec, enabled: true, restart: false },
    {
      ...{ clock, env, pids, redactor, secrets, oauth, clientVersion, sandboxes, stderr },
      hubSession: session,
      offers: ALL_CAPABILITIES,
      eras: new InMemoryEras(),
      graceMs: 0,
      openWire: (...request) => limit.startWhenReady((deps.openWire ?? openWire)(...request)),
    },
  );
  try {
    const given = signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]);
    const ended = await endsWithin(connection.connect(), { signal: given });
    const info = connection.info();
    const ok = ended && info.status === "connected";
    const reason = signal?.aborted === true ? "the test was cancelled" : `not connected within ${spec.timeout} ms`;
    const tools = connection.definitions().tools.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
    return {
      ok,
      tools: ok ? tools : [],
      serverVersion: info.serverVersion,
      error: ok ? null : (info.lastError ?? reason),
      hint: info.hint,
      stderr: stderr.lines(spec.id).map(redactor.mask),
    };
  } finally {
    await connection.close();
    limit.stop();
    session.close();
  }
}

/** The time that connecting may take, without that for what is made once, such as an image or a package: see Wire. */
class ConnectLimit {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #late = new AbortController();
  #stopTimer: () => void = () => {};

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#start();
  }

  /** Aborts when the time is up. */
  get signal(): AbortSignal {
    return this.#late.signal;
  }

  startWhenReady(wire: Wire): Wire {
    wire.listen({ installing: (isInstalling) => (isInstalling ? this.stop() : this.#start()) });
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
    this.#stopTimer();
  }

  #start(): void {
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(this.#timeoutMs, () => this.#late.abort());
  }
}
