/** The log is kept by a thread of its own, which is started when there is first something to do for it. */
import type { Worker } from "node:worker_threads";
import { endsWithin } from "../../base/async.ts";
import { systemClock } from "../../base/clock.ts";
import { ThreadCalls } from "../../base/thread-calls.ts";
import type { Stats } from "../../contract/stats-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { StoredSession } from "../../store/store.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { SeenFile } from "../../telemetry/audit/record.ts";
import type { AuditReport } from "../../telemetry/audit/verify.ts";
import type { AuditKeeping, IntakeScope } from "./audit-keeper.ts";
import type { AuditWork } from "./audit-worker.ts";
import type { AuditPage, AuditQuery } from "./query.ts";
import type { StatsQuery } from "./stats.ts";

/** Memory of the thread for short-lived objects; by default it would be several times as much as all of the rest. */
const YOUNG_MB = 4;
/** A thread that ended by itself is not started again sooner, unless someone asks for something. */
const RESTART_MS = 5000;

/** For a database that does not answer when the hub closes; what it has not taken stays in the folder. */
const END_MS = 4000;

const IDLE_MS = 15_000;

interface RunningThread {
  readonly worker: Worker;
  readonly calls: ThreadCalls;
}

interface AuditThreadOptions {
  readonly work: AuditWork;
  readonly log: Pick<AuditLog, "prune" | "renew">;
  readonly warn: (message: string) => void;
  /** How long it stays without anything to do. */
  readonly idleMs?: number;
}

export class AuditThread implements AuditKeeping {
  readonly #options: AuditThreadOptions;
  #thread: RunningThread | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #stopIdle = (): void => {};

  constructor(options: AuditThreadOptions) {
    this.#options = options;
  }

  /** What goes to a database that others read is not put off. */
  get isReady(): boolean {
    const { address } = this.#options.work;
    return this.#thread !== undefined || (address !== undefined && "url" in address);
  }

  async takeIn(scope: IntakeScope): Promise<void> {
    if (this.#options.work.address === undefined) return;
    if (scope === "due" && performance.now() - this.#failedAt < RESTART_MS) return;
    await this.#call("takeIn", scope);
  }

  query(query: AuditQuery): Promise<AuditPage> {
    return this.#call("query", query);
  }

  stats(query: StatsQuery): Promise<Stats> {
    return this.#call("stats", query);
  }

  verify(wroteHere: boolean | undefined): Promise<AuditReport> {
    return this.#call("verify", wroteHere);
  }

  /** False if the thread does not run: then it is not worth starting one. */
  async putSessions(sessions: readonly StoredSession[]): Promise<boolean> {
    if (this.#thread === undefined || this.#isClosed || this.#options.work.address === undefined) return false;
    await this.#call("putSessions", sessions);
    return true;
  }

  /** A thread that does not run is not started for the end: the next hub of this home takes in what is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle();
    const { address } = this.#options.work;
    const isShared = address !== undefined && "url" in address;
    if (this.#thread !== undefined || isShared) await this.#end();
  }

  async #end(): Promise<void> {
    await endsWithin(
      this.#call("close").catch(() => {}),
      { ms: END_MS },
    );
    const ended = this.#thread;
    this.#thread = undefined;
    await ended?.worker.terminate();
  }

  /** Whoever waits for an answer keeps the process alive; the thread alone does not. */
  async #call<Result>(name: string, ...args: readonly unknown[]): Promise<Result> {
    this.#stopIdle();
    const { worker, calls } = (this.#thread ??= this.#start());
    worker.ref();
    try {
      return await calls.call<Result>(name, ...args);
    } finally {
      if (calls.size === 0) {
        worker.unref();
        this.#endWhenIdle(worker);
      }
    }
  }

  /** It takes some 20 MB, and another one is there in a moment. */
  #endWhenIdle(worker: Worker): void {
    this.#stopIdle();
    this.#stopIdle = systemClock.after(this.#options.idleMs ?? IDLE_MS, () => {
      if (this.#isClosed || this.#thread?.worker !== worker) return;
      const { calls } = this.#thread;
      calls.call<boolean>("isWaiting").then(
        (isWaiting) => {
          if (calls.size > 0 || this.#isClosed || this.#thread?.worker !== worker) return;
          if (isWaiting) this.#endWhenIdle(worker);
          else void this.#retire(this.#thread);
        },
        () => {},
      );
    });
  }

  /** Calls that come from now on get another thread. */
  async #retire({ worker, calls }: RunningThread): Promise<void> {
    this.#thread = undefined;
    await calls.call("close").catch(() => {});
    await worker.terminate();
  }

  #start(): RunningThread {
    const { work, log, warn } = this.#options;
    const { Worker } = process.getBuiltinModule("node:worker_threads");
    // The bundler knows this line by its words.
    const worker = new Worker(new URL("./audit-worker.ts", import.meta.url), {
      name: "toolcrib audit",
      workerData: work,
      execArgv: [],
      argv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const calls = new ThreadCalls(worker, {
      prune: (files: readonly SeenFile[]) => log.prune(files),
      renew: () => log.renew(),
      warn,
    });
    let reason = "it ended";
    worker.on("error", (error) => (reason = error instanceof Error ? error.message : String(error)));
    worker.on("exit", () => {
      calls.fail(new ToolcribError("internal", `The thread of the audit log cannot answer: ${reason}.`));
      if (this.#thread?.worker !== worker) return;
      this.#thread = undefined;
      this.#failedAt = performance.now();
      warn(`The thread of the audit log ended: ${reason}. Records stay in ${work.dir} until it runs again.`);
    });
    return { worker, calls };
  }
}
