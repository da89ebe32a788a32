/** The audit log of a hub: the journal that is written, and what reads it and takes it into the store. */
import { join } from "node:path";
import { endsWithin } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { ThreadPool } from "../../base/thread-calls.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { CheckedInput, OutputOf } from "../../contract/operations.ts";
import type { Stats } from "../../contract/stats-schemas.ts";
import type { Config } from "../../model/config.ts";
import { asSentence, asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { maskCredentials } from "../../secrets/mask.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Store, StoredSession, StoredSessions } from "../../store/store.ts";
import { AuditKey, type AuditKeys, auditKeysOf, NO_KEYS } from "../../telemetry/audit/key.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";
import type { AuditSink } from "../../telemetry/call-record.ts";
import { type HubEvents, suspiciousResult } from "../hub-events.ts";
import type { AuditKeeper } from "./audit-keeper.ts";
import type { AuditWork } from "./audit-worker.ts";
import { Recording } from "./recording.ts";
import { type AuditInput, type AuditWish, withTimes } from "./query.ts";
import { type AuditStore, hasWrittenHere, journalKey, verdictOf } from "./verify.ts";

const EXPORTED_AT_ONCE = 10_000;
/** How long whoever asks for figures waits until what was written is counted. */
const WAIT_MS = 2000;
const HOUR_MS = 60 * 60 * 1000;
/** Records that are written meanwhile go along. */
const SOON_MS = 1000;
/** Until a thread is started for the calls that were written. */
const START_MS = 5000;
/** After a failure. */
const RETRY_MS = 5000;
/** For a database that does not answer when the hub closes; what it has not taken stays in the folder. */
const END_MS = 4000;
/** The thread takes some 20 MB, and another one is there in a moment. */
const IDLE_MS = 15_000;
/** Memory of the thread for short-lived objects; by default it would be several times as much as all of the rest. */
const YOUNG_MB = 4;

export interface OpenAuditOptions {
  /** `$TOOLCRIB_HOME`. */
  readonly home: string;
  readonly config: Config["audit"];
  readonly store: Store | undefined;
  readonly keys?: AuditKeys;
  readonly clock: Clock;
  readonly redact: (text: string) => string;
  readonly cluster?: Cluster | undefined;
  /** Recording was switched on or has ended. */
  readonly onRecording?: () => void;
  readonly warn: (message: string) => void;
}

export function openAudit(options: OpenAuditOptions): { readonly log: AuditLog; readonly audit: HubAudit } {
  const { config, clock, redact, warn, store, cluster, keys = NO_KEYS, onRecording: onChange = () => {} } = options;
  const { maxBytes, maxDays } = config;
  const dir = join(options.home, "audit");
  const note = (record: EventRecord): void => log.event(record);
  const recording = new Recording({ clock, config, nodes: cluster, note, onChange });
  const log: AuditLog = new AuditLog({
    dir,
    maxBytes,
    maxDays,
    isJournal: store !== undefined,
    keys,
    keepsArguments: config.arguments ? () => true : recording.isOn,
    keepsResults: config.results ? () => true : recording.isOn,
    maskCredentials,
    redact,
    node: cluster?.node.name,
    clock,
    onProblem: warn,
    onWritten: () => audit.soon(),
  });
  const { chain, fileBytes } = log;
  const knownKeys = [...keys.known.values()].map(({ secret }) => secret);
  const bounds = { fileBytes, maxBytes, maxDays };
  const keeper = auditThread({ dir, chain, ...bounds, address: store?.address, key: keys.current?.secret, knownKeys });
  const audit = new HubAudit({ dir, log, clock, store, recording, keeper, warn });
  audit.start();
  return { log, audit };
}

/** The work on the log, in its own thread or, in tests, in that of the caller. */
export interface AuditKeeping extends Pick<AuditKeeper, "takeIn" | "remove" | "query" | "stats" | "verify"> {
  /** Whether work costs no more than itself; if not, a thread must be started for it. */
  readonly isReady: boolean;
  /** Sessions are written here too, because their records change with each call. False if they are not. */
  putSessions(sessions: readonly StoredSession[]): Promise<boolean>;
  /** Takes in what this process wrote and nothing else: whoever closes does not wait for the rest. */
  close(): Promise<void>;
}

/** In a thread of its own, which is started when there is first something to do for it. */
export function auditThread(work: AuditWork, idleMs = IDLE_MS): AuditKeeping {
  const threads = new ThreadPool({
    ...{ most: 1, maxWaiting: Number.POSITIVE_INFINITY, idleMs },
    start() {
      const { Worker } = process.getBuiltinModule("node:worker_threads");
      // The bundler knows this line by its words.
      return new Worker(new URL("./audit-worker.ts", import.meta.url), {
        name: "toolcrib audit",
        workerData: work,
        execArgv: [],
        argv: [],
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      });
    },
  });
  const isShared = work.address !== undefined && "url" in work.address;
  return {
    // What goes to a database that others read is not put off.
    get isReady() {
      return threads.isRunning || isShared;
    },
    takeIn: (scope) => threads.call("takeIn", scope),
    remove: (names) => threads.call("remove", names),
    query: (query) => threads.call("query", query),
    stats: (query) => threads.call("stats", query),
    verify: (wroteHere) => threads.call("verify", wroteHere),
    async putSessions(sessions) {
      if (!threads.isRunning || work.address === undefined) return false;
      await threads.call("putSessions", sessions);
      return true;
    },
    /** A thread that does not run is not started for the end: the next hub of this home takes in what is left. */
    async close() {
      if (isShared) threads.call("takeIn", "last").catch(() => {});
      await threads.close(END_MS);
    },
  };
}

export interface HubAuditOptions {
  readonly dir: string;
  readonly log: AuditLog;
  readonly clock: Clock;
  /** Undefined for a hub without one. */
  readonly store: Omit<AuditStore, "audit"> | undefined;
  readonly keeper: AuditKeeping;
  readonly recording: Recording;
  readonly warn: (message: string) => void;
}

/** For those who ask: the store if there is one, else the files. And says when files are taken into the store. */
export class HubAudit {
  readonly recording: Recording;
  readonly #options: HubAuditOptions;
  #timer: { readonly due: number; readonly cancel: () => void } | undefined;
  #running: Promise<void> = Promise.resolve();
  /** The run that waits for the one in progress. */
  #next: Promise<void> | undefined;
  #isFailing = false;
  #knowsBefore = false;
  #closed: Promise<void> | undefined;

  constructor(options: HubAuditOptions) {
    this.#options = options;
    this.recording = options.recording;
  }

  /** Others may have left files behind, and what is too old goes while nothing is written too. */
  start(): void {
    this.soon();
  }

  /** Something was written. A database that is down is tried again when its time has come. */
  soon(): void {
    const { keeper, log } = this.#options;
    // The few records of a start are read where they are: no thread is started for them while nobody calls anything.
    if (!this.#isFailing) this.#again(keeper.isReady ? SOON_MS : log.hasCalls ? START_MS : HOUR_MS);
  }

  /** The newest first unless asked otherwise. */
  async query(input: AuditInput): Promise<OutputOf<"listAudit">> {
    const { clock, keeper, log } = this.#options;
    const query = withTimes(input, clock.now());
    log.flush();
    return keeper.query(query);
  }

  /** Figures of calls over time. */
  async stats(input: CheckedInput<"getStats">): Promise<Stats> {
    const { clock, keeper } = this.#options;
    // Whoever asks while the files of years are taken in does not wait for all of them.
    await endsWithin(
      this.flush().catch(() => {}),
      { ms: WAIT_MS, clock },
    );
    return keeper.stats({ ...input, now: clock.now() });
  }

  /** Writes a record of something that was done, other than a call. */
  note(record: EventRecord): void {
    this.#options.log.event(record);
  }

  async verify(): Promise<AuditVerdict> {
    const { dir, log, store, keeper } = this.#options;
    log.flush();
    return verdictOf(await keeper.verify(await hasWrittenHere(dir, store)));
  }

  /** JSON, one entry and a line break each, the oldest first. */
  async *exportLines(input: AuditWish = {}): AsyncGenerator<string> {
    const { clock, keeper, log } = this.#options;
    const wish = withTimes(input, clock.now());
    log.flush();
    let cursor: string | undefined;
    do {
      const page = await keeper.query({ ...wish, cursor, limit: EXPORTED_AT_ONCE, order: "oldest" });
      for (const entry of page.entries) yield `${JSON.stringify(entry)}\n`;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }

  /** The same records of sessions, written by the thread of the log while that runs. */
  sessionsOf(stored: StoredSessions): StoredSessions {
    const put: StoredSessions["put"] = async (sessions) => {
      if (!(await this.#options.keeper.putSessions(sessions))) await stored.put(sessions);
    };
    return { ...stored, put };
  }

  /** Resolves when everything that was written so far can be queried. Rejects if the store cannot take it. */
  async flush(): Promise<void> {
    this.#options.log.flush();
    await this.#takeIn();
  }

  /** Ends the log. Safe to call twice. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  #again(ms: number): void {
    const { clock, store } = this.#options;
    const due = clock.now() + ms;
    if (store === undefined || this.#closed !== undefined || (this.#timer?.due ?? due + 1) <= due) return;
    this.#timer?.cancel();
    const cancel = clock.after(ms, () => {
      this.#timer = undefined;
      this.#takeIn().catch(() => {});
    });
    this.#timer = { due, cancel };
  }

  /** A run that has begun may have passed what was written since; one that waits will see it. */
  #takeIn(): Promise<void> {
    if (this.#options.store === undefined) return Promise.resolve();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#run();
      });
    return (this.#running = this.#next);
  }

  async #run(): Promise<void> {
    const { keeper, log, warn, dir } = this.#options;
    this.#expectHeads().catch(() => {});
    log.renew();
    try {
      const { againMs, surplus, warnings, failure } = await keeper.takeIn("all");
      for (const warning of warnings) warn(warning);
      // Written before anything goes, so that a crash in between leaves nothing unexplained.
      if (surplus.length > 0 && log.prune(surplus)) await keeper.remove(surplus.map(({ file }) => file));
      if (failure !== undefined) throw new ToolcribError(failure.code, failure.message, failure);
      this.#isFailing = false;
      this.#again(againMs);
    } catch (error) {
      const reason = asSentence(asToolcribError(error).message);
      // A thread that is ended while it waits for a database leaves the rest to the next hub.
      if (!this.#isFailing && this.#closed === undefined)
        warn(`Audit records could not be put into the store: ${reason} They stay in ${dir} until they can be.`);
      this.#isFailing = true;
      this.#again(RETRY_MS);
      throw error;
    }
  }

  /** Whoever wrote to this folder before left a head behind, also where all its files are in the store by now. */
  async #expectHeads(): Promise<void> {
    const { dir, log, store } = this.#options;
    if (this.#knowsBefore || store === undefined || log.currentFile === undefined) return;
    const first = await store.settings.setOnce(journalKey(dir), log.chain);
    if (first !== log.chain && !this.#knowsBefore) log.expectHeads(first);
    this.#knowsBefore = true;
  }

  async #close(): Promise<void> {
    const { log, keeper } = this.#options;
    this.#timer?.cancel();
    this.recording.close();
    log.flush();
    await this.#expectHeads().catch(() => {});
    log.close();
    await keeper.close();
  }
}

/** Where the records of calls go: to the audit log, and to everybody who listens to the hub. */
export function auditSink(audit: AuditLog, events: Emitter<HubEvents>): AuditSink {
  return {
    begin(record, content) {
      events.emit("call-start", record);
      return audit.begin(record, content);
    },
    keepsResults: (source) => audit.keepsResults(source),
    withhold: (callId) => audit.withhold(callId),
    write(record, content) {
      events.emit("call", record);
      const suspicious = suspiciousResult(record);
      if (suspicious !== undefined) events.emit("suspicious", suspicious);
      return audit.write(record, content);
    },
    get lost() {
      return audit.lost;
    },
  };
}

/**
 * The keys that `audit.key` and `audit.oldKeys` name, looked up once: a log does not change its key while it is written.
 * Rejects if one is missing, because a log that should be keyed must not become a plain one unnoticed.
 */
export async function lookUpAuditKeys({ config, baseDir }: LoadedConfig, secrets: Secrets): Promise<AuditKeys> {
  const { key, oldKeys } = config.audit;
  const lookUp = async (name: string, reference: string): Promise<AuditKey> => {
    try {
      const { value } = await secrets.resolve(reference, { baseDir });
      secrets.redactor.addCredential(value);
      return new AuditKey(value, name);
    } catch (error) {
      const { code, message, hint } = asToolcribError(error);
      throw new ToolcribError(code, `The audit log cannot be keyed, so nothing is started: ${message}`, {
        hint: hint ?? `Give \`${name}\` a value, or take it out of the config.`,
        cause: error,
      });
    }
  };
  const current = key === undefined ? undefined : await lookUp("audit.key", key);
  const old = await Promise.all(oldKeys.map((each, index) => lookUp(`audit.oldKeys[${index}]`, each)));
  return auditKeysOf(current, old);
}
