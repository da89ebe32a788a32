/** The audit log of a hub: the journal that is written, and what reads it and takes it into the store. */
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { CheckedInput, OutputOf } from "../../contract/operations.ts";
import type { Stats } from "../../contract/stats-schemas.ts";
import type { Config } from "../../model/config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { maskCredentials } from "../../secrets/mask.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Store, StoredSessions } from "../../store/store.ts";
import { listFiles } from "../../telemetry/audit/files.ts";
import { AuditKey, type AuditKeys, auditKeysOf, NO_KEYS } from "../../telemetry/audit/key.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";
import type { AuditSink } from "../../telemetry/call-record.ts";
import { type HubEvents, suspiciousResult } from "../hub-events.ts";
import type { AuditKeeping } from "./audit-keeper.ts";
import { AuditThread } from "./audit-thread.ts";
import { Recording } from "./recording.ts";
import { type AuditInput, wishOf } from "./query.ts";
import { type AuditStore, hasWrittenHere, journalKey, verdictOf } from "./verify.ts";

const EXPORTED_AT_ONCE = 10_000;
/** How long whoever asks for figures waits until what was written is counted. */
const WAIT_MS = 2000;
const HOUR_MS = 60 * 60 * 1000;
/** Records that are written meanwhile go along. */
const SOON_MS = 1000;
/** Until a thread is started for what was written: the few records of a start are taken in when nothing else is to be done. */
const START_MS = 5000;

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
    keepArguments: config.arguments,
    keepResults: config.results,
    isRecording: recording.isOn,
    maskCredentials,
    redact,
    node: cluster?.node.name,
    clock,
    onProblem: warn,
    onWritten: () => audit.soon(),
  });
  const { chain, fileBytes } = log;
  const knownKeys = [...keys.known.values()].map(({ secret }) => secret);
  const work = {
    dir,
    chain,
    fileBytes,
    maxBytes,
    maxDays,
    address: store?.address,
    key: keys.current?.secret,
    knownKeys,
  };
  const audit = new HubAudit({ dir, log, clock, store, recording, keeper: new AuditThread({ work, log, warn }) });
  audit.start();
  return { log, audit };
}

export interface HubAuditOptions {
  readonly dir: string;
  readonly log: AuditLog;
  readonly clock: Clock;
  /** Undefined for a hub without one. */
  readonly store: (Omit<AuditStore, "audit"> & Pick<Store, "settings">) | undefined;
  readonly keeper: AuditKeeping;
  readonly recording: Recording;
}

/** For those who ask: the store if there is one, else the files. */
export class HubAudit {
  readonly recording: Recording;
  readonly #options: HubAuditOptions;
  #cancelSoon: (() => void) | undefined;
  #cancelHourly = (): void => {};
  #knowsBefore = false;
  #closed: Promise<void> | undefined;

  constructor(options: HubAuditOptions) {
    this.#options = options;
    this.recording = options.recording;
  }

  /** Others may have left files behind, and what is too old goes while nothing is written too. */
  start(): void {
    const { clock, dir } = this.#options;
    if (hasFiles(dir)) this.soon();
    this.#cancelHourly = clock.after(HOUR_MS, () => {
      this.soon();
      this.start();
    });
  }

  /** Something was written. */
  soon(): void {
    const { clock, keeper, store } = this.#options;
    if (store === undefined || this.#closed !== undefined) return;
    this.#cancelSoon ??= clock.after(keeper.isReady ? SOON_MS : START_MS, () => {
      this.#cancelSoon = undefined;
      this.#expectHeads().catch(() => {});
      keeper.takeIn("due").catch(() => {});
    });
  }

  /** The newest first unless asked otherwise. */
  async query(input: AuditInput): Promise<OutputOf<"listAudit">> {
    const { clock, keeper, log } = this.#options;
    const { limit, cursor, order } = input;
    const wish = wishOf(input, clock.now());
    log.flush();
    return keeper.query({ ...wish, limit, cursor, order });
  }

  /** Figures of calls over time. */
  async stats(input: CheckedInput<"getStats">): Promise<Stats> {
    const { clock, keeper } = this.#options;
    await this.#takeIn();
    return keeper.stats({ ...input, now: clock.now() });
  }

  /** Writes a record of something that was done, other than a call. */
  note(record: Omit<EventRecord, "time">): void {
    const { log, clock } = this.#options;
    log.event({ ...record, time: new Date(clock.now()).toISOString() });
  }

  async verify(): Promise<AuditVerdict> {
    const { dir, log, store, keeper } = this.#options;
    log.flush();
    return verdictOf(await keeper.verify(store === undefined ? undefined : await hasWrittenHere(dir, store)));
  }

  /** JSON, one entry and a line break each, the oldest first. */
  async *exportLines(input: Partial<Omit<AuditInput, "limit" | "cursor" | "order">> = {}): AsyncGenerator<string> {
    const { clock, keeper, log } = this.#options;
    const wish = wishOf(input, clock.now());
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
    const { log, keeper } = this.#options;
    log.flush();
    await keeper.takeIn("all");
  }

  /** Ends the log. Safe to call twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** What cannot be taken in now is taken in later: whoever asks while the files of years are taken in does not wait for all of them. */
  async #takeIn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#options.clock.after(WAIT_MS, resolve);
    this.flush().then(resolve, resolve);
    await promise;
    stop();
  }

  /** Whoever wrote to this folder before left a head behind, also where all its files are in the store by now. */
  async #expectHeads(): Promise<void> {
    const { dir, log, store } = this.#options;
    if (this.#knowsBefore || store === undefined || log.currentFile === undefined) return;
    const first = await store.settings.setOnce(journalKey(dir), log.chain);
    if (first !== log.chain && !this.#knowsBefore) log.expectHeads();
    this.#knowsBefore = true;
  }

  async #close(): Promise<void> {
    const { log, keeper } = this.#options;
    this.#cancelSoon?.();
    this.#cancelHourly();
    this.recording.close();
    log.flush();
    await this.#expectHeads().catch(() => {});
    log.close();
    await keeper.close();
  }
}

/** True also for a folder that cannot be read: whoever takes it in says why. */
function hasFiles(dir: string): boolean {
  try {
    return listFiles(dir).length > 0;
  } catch {
    return true;
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
