/** Records of sessions: who opened them through which door, and their calls. Written in batches, because calls are many. */
import type { SessionInfo } from "../../contract/activity-schemas.ts";
import { Queue } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { Session } from "../../sessions/session.ts";
import { taintRecord } from "../../sessions/taint.ts";
import type { StoredSession, StoredSessions } from "../../store/store.ts";

const WRITE_DELAY_MS = 5000;
/** Closed sessions that wait while the store fails. */
const MAX_WAITING = 10_000;

interface OpenSession {
  readonly session: Session;
  readonly openedAt: string;
  lastCallAt: number | null;
  calls: number;
}

interface SessionRecordsOptions {
  readonly stored: StoredSessions;
  /** This hub. */
  readonly hub: string;
  readonly clock: Clock;
  readonly onProblem: (error: unknown) => void;
}

export class SessionRecords {
  readonly #options: SessionRecordsOptions;
  readonly #open = new Map<string, OpenSession>();
  /** Open sessions whose latest state is not stored. */
  #changed = new Set<OpenSession>();
  #over = new Map<string, StoredSession>();
  #stopTimer: (() => void) | undefined;
  readonly #queue = new Queue();

  constructor(options: SessionRecordsOptions) {
    this.#options = options;
  }

  opened(session: Session): void {
    const record: OpenSession = { session, openedAt: this.#now(), lastCallAt: null, calls: 0 };
    this.#open.set(session.id, record);
    this.#note(record);
  }

  closed(session: Session): void {
    const record = this.#open.get(session.id);
    if (record === undefined) return;
    this.#open.delete(session.id);
    this.#changed.delete(record);
    this.#over.set(session.id, { ...this.#storedOf(record), closedAt: this.#now() });
    const [oldest] = this.#over.size > MAX_WAITING ? this.#over.keys() : [];
    if (oldest !== undefined) this.#over.delete(oldest);
    this.#writeLater();
  }

  called(sessionId: string, at: number): void {
    const record = this.#open.get(sessionId);
    if (record === undefined) return;
    record.calls += 1;
    record.lastCallAt = at;
    this.#note(record);
  }

  closeAll(): void {
    for (const { session } of this.#open.values()) this.closed(session);
  }

  /** An open session of this hub. */
  live(id: string): Session | undefined {
    return this.#open.get(id)?.session;
  }

  /** The current state, which the store may not have yet. */
  latest(stored: StoredSession): StoredSession {
    const record = this.#open.get(stored.id);
    return record === undefined ? stored : this.#storedOf(record);
  }

  async find(id: string): Promise<StoredSession | undefined> {
    const record = this.#open.get(id);
    return record === undefined ? (this.#over.get(id) ?? this.#options.stored.get(id)) : this.#storedOf(record);
  }

  /** Writes all changes. Rejects if the store does; the changes are then written the next time. */
  flush(): Promise<void> {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    return this.#queue.run(() => this.#write());
  }

  async #write(): Promise<void> {
    if (this.#changed.size === 0 && this.#over.size === 0) return;
    const [changed, over] = [this.#changed, this.#over];
    this.#changed = new Set();
    this.#over = new Map();
    try {
      await this.#options.stored.put([...over.values(), ...Array.from(changed, (record) => this.#storedOf(record))]);
    } catch (error) {
      // A session that was closed meanwhile must not be written as open.
      for (const record of changed) if (this.#open.has(record.session.id)) this.#changed.add(record);
      this.#over = new Map([...over, ...this.#over]);
      throw error;
    }
  }

  #note(record: OpenSession): void {
    this.#changed.add(record);
    this.#writeLater();
  }

  #writeLater(): void {
    this.#stopTimer ??= this.#options.clock.after(WRITE_DELAY_MS, () => {
      this.flush().catch((error: unknown) => {
        this.#options.onProblem(error);
        this.#writeLater();
      });
    });
  }

  #storedOf({ session, openedAt, lastCallAt, calls }: OpenSession): StoredSession {
    return {
      id: session.id,
      hub: this.#options.hub,
      door: session.door,
      role: session.role ?? null,
      user: session.user ?? null,
      client: session.clientInfo === undefined ? null : { ...session.clientInfo },
      owner: session.owner,
      openedAt,
      closedAt: null,
      lastCallAt: lastCallAt === null ? null : new Date(lastCallAt).toISOString(),
      calls,
      taint: session.taint && taintRecord(session.taint),
    };
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }
}

/** @param live Only for a session that is open in this hub. */
export async function sessionInfo(
  { hub: _hub, taint, client, ...rest }: StoredSession,
  live?: { readonly running: number; readonly toolCount: number; readonly conversation?: string | undefined },
): Promise<SessionInfo> {
  // Loaded here: agents need none of it.
  const { ClientInfoSchema, TaintSchema } = await import("../../contract/activity-schemas.ts");
  const unseen = { running: 0, toolCount: rest.closedAt === null ? null : 0 };
  return {
    ...rest,
    ...(live ?? unseen),
    // Null if another version of Toolcrib wrote it in another form.
    client: ClientInfoSchema.safeParse(client).data ?? null,
    taint: TaintSchema.safeParse(taint).data ?? null,
  };
}
