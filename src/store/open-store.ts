/** The one way to a Store. The databases' packages are loaded here, when a store is opened, and nowhere before. */
import { join } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import type { DatabaseEngine } from "./database.ts";
import type { BusyStore, Store, StoreAddress } from "./store.ts";

export interface OpenStoreOptions {
  /** `$TOOLCRIB_HOME`; without a URL the database is the file `toolcrib.db` in it. */
  readonly home: string;
  /** Of a PostgreSQL database, with its password. */
  readonly url?: string;
  readonly clock?: Clock;
  /** Whether a database is made where none is; true if absent. */
  readonly create?: boolean;
  readonly warn?: (message: string) => void;
}

export function databaseFile(home: string): string {
  return join(home, "toolcrib.db");
}

/**
 * Undefined only with `create: false`, where there is no database yet. Rejects with `invalid_config` for one that is
 * damaged, of a newer version or not ours, and with `server_unavailable` for one that cannot be reached; neither is
 * written to then.
 */
export async function openStore(options: OpenStoreOptions): Promise<Store | undefined> {
  const { home, url, clock = systemClock, create = true, warn = () => {} } = options;
  if (url === undefined && !create && !(await hasFile(databaseFile(home)))) return undefined;
  const engine = await openEngine(home, url, clock, warn);
  try {
    const [{ migrate, versionOf }, { databaseStore }] = await Promise.all([
      import("./migrations.ts"),
      import("./database-store.ts"),
    ]);
    if (!create && (await versionOf(engine, engine.db)) === undefined) {
      await engine.close();
      return undefined;
    }
    await migrate(engine, () => new Date(clock.now()).toISOString());
    return await databaseStore(engine, { clock, warn });
  } catch (error) {
    await engine.close().catch(() => {});
    throw error;
  }
}

/** Through a connection of its own, to a store that is open in another thread. */
export async function openBusyStore(
  address: StoreAddress,
  options: Pick<Required<OpenStoreOptions>, "clock" | "warn">,
): Promise<BusyStore> {
  const { busyStore } = await import("./database-store.ts");
  if ("url" in address) {
    const { postgresEngine } = await import("./postgres-engine.ts");
    return busyStore(await postgresEngine(address.url, options));
  }
  const { sqliteEngine } = await import("./sqlite-engine.ts");
  return busyStore(await sqliteEngine(address.file, { ...options, isSecond: true }));
}

async function openEngine(
  home: string,
  url: string | undefined,
  clock: Clock,
  warn: (message: string) => void,
): Promise<DatabaseEngine> {
  if (url === undefined) {
    const { sqliteEngine } = await import("./sqlite-engine.ts");
    return sqliteEngine(databaseFile(home), { clock, warn });
  }
  const { postgresEngine } = await import("./postgres-engine.ts");
  return postgresEngine(url, { clock, warn });
}

async function hasFile(file: string): Promise<boolean> {
  const { stat } = await import("node:fs/promises");
  return ((await stat(file).catch(() => undefined))?.size ?? 0) > 0;
}
