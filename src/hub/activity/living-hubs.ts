/**
 * Which of the hubs that share a store are alive. Each leaves a note in the settings and renews it; a note that was not
 * renewed in time is that of a hub that died. All users of an SQLite file are on one machine, so there a dead process is
 * known at once, and notes are renewed seldom: a hub at rest should not wake the disk.
 */
import { isAlive } from "../../files/is-alive.ts";
import type { Clock } from "../../model/clock.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Store } from "../../store/store.ts";

const RENEW_MS = { sqlite: 5 * 60_000, postgres: 30_000 } as const;
/** A note counts for so many times the time between two renewals. */
const GRACE = 3;

interface Note {
  readonly pid: number;
  readonly at: number;
}

interface LivingHubsOptions {
  readonly store: Pick<Store, "kind" | "settings">;
  /** This hub. */
  readonly hub: string;
  readonly clock: Clock;
  /** A note could not be written. */
  readonly onProblem: (error: unknown) => void;
}

export class LivingHubs {
  readonly #options: LivingHubsOptions;
  #stopTimer = (): void => {};
  #ended = false;

  constructor(options: LivingHubsOptions) {
    this.#options = options;
  }

  async begin(): Promise<void> {
    await this.#write();
    this.#renewLater();
  }

  /** Those of the given hubs that are alive; this one is. */
  async among(hubs: Iterable<string>): Promise<string[]> {
    const { settings } = this.#options.store;
    const living = [this.#options.hub];
    for (const hub of new Set(hubs)) {
      if (hub === this.#options.hub) continue;
      const note = parseNote(await settings.get(keyOf(hub)));
      if (note !== undefined && this.#isFresh(note)) living.push(hub);
    }
    return living;
  }

  /** The process id of a hub on this machine. */
  async processOf(hub: string): Promise<number | undefined> {
    const { kind, settings } = this.#options.store;
    return kind === "sqlite" ? parseNote(await settings.get(keyOf(hub)))?.pid : undefined;
  }

  /** Takes away notes of hubs that are gone. */
  async forget(hubs: Iterable<string>): Promise<void> {
    for (const hub of hubs) await this.#options.store.settings.remove(keyOf(hub));
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#stopTimer();
    await this.forget([this.#options.hub]);
  }

  #renewLater(): void {
    const { clock, store, onProblem } = this.#options;
    this.#stopTimer = clock.after(RENEW_MS[store.kind], () => {
      this.#write().catch(onProblem);
      this.#renewLater();
    });
  }

  async #write(): Promise<void> {
    const { store, clock, hub } = this.#options;
    const note: Note = { pid: process.pid, at: clock.now() };
    if (!this.#ended) await store.settings.set(keyOf(hub), JSON.stringify(note));
  }

  #isFresh({ pid, at }: Note): boolean {
    const { store, clock } = this.#options;
    if (clock.now() - at > GRACE * RENEW_MS[store.kind]) return false;
    return store.kind !== "sqlite" || isAlive(pid);
  }
}

function keyOf(hub: string): string {
  return `hub.${hub}`;
}

function parseNote(text: string | undefined): Note | undefined {
  if (text === undefined) return undefined;
  try {
    const { pid, at } = asObject(JSON.parse(text));
    return typeof pid === "number" && typeof at === "number" ? { pid, at } : undefined;
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}
