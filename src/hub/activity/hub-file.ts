/**
 * `$TOOLCRIB_HOME/hubs/<pid>.json`: how commands of the same user find a running hub, and the token that lets them in. Only
 * that user can read it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { portOf } from "../../base/network-address.ts";
import { isProcessAlive } from "../../files/lock-file.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { isJsonObject } from "../../model/json.ts";

export interface HubRecord {
  /** Where it listens, as this machine reaches it. */
  readonly url: string;
  readonly publicUrl?: string;
  readonly pid: number;
  /** Has the scope `admin`. */
  readonly token: string;
}

const FILE_NAME = /^(\d+)(?:-\d+)?\.json$/;
/** A process may run several hubs; the first has the plain name. */
const ownFiles = new Set<string>();

/** The returned function removes it. */
export async function writeHubFile(home: string, record: HubRecord): Promise<() => Promise<void>> {
  const folder = join(home, "hubs");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // It may have existed with a wider mode.
  await chmod(folder, 0o700);
  await removeStale(folder);
  const file = freeName(folder, record.pid);
  ownFiles.add(file);
  try {
    // A file that is replaced keeps its mode; one of a dead process with our id must not pass its own on.
    await rm(file, { force: true });
    await writeAtomic(file, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  } catch (error) {
    ownFiles.delete(file);
    throw error;
  }
  return async () => {
    await rm(file, { force: true });
    ownFiles.delete(file);
  };
}

/** Hubs of this home whose process is alive. */
export async function readHubFiles(home: string): Promise<HubRecord[]> {
  const folder = join(home, "hubs");
  const records = await Promise.all((await namesIn(folder)).map((name) => readRecord(join(folder, name))));
  return records.filter((record) => record !== undefined).filter(({ pid }) => isProcessAlive(pid));
}

/** The ports that they listen at. Synchronous: it is asked just before a connection is made. */
export function hubPorts(home: string): ReadonlySet<number> {
  const folder = join(home, "hubs");
  const ports = new Set<number>();
  for (const name of existsSync(folder) ? readdirSync(folder).filter((each) => FILE_NAME.test(each)) : []) {
    if (!isProcessAlive(Number(FILE_NAME.exec(name)?.[1]))) continue;
    try {
      const url = URL.parse(String((JSON.parse(readFileSync(join(folder, name), "utf8")) as Partial<HubRecord>).url));
      if (url !== null) ports.add(portOf(url));
    } catch {
      // Gone meanwhile.
    }
  }
  return ports;
}

async function readRecord(file: string): Promise<HubRecord | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    if (!isJsonObject(value)) return undefined;
    const { url, publicUrl, pid, token } = value;
    if (typeof url !== "string" || typeof pid !== "number" || typeof token !== "string") return undefined;
    return { url, pid, token, ...(typeof publicUrl === "string" ? { publicUrl } : {}) };
  } catch {
    // Gone meanwhile, or not ours to read.
    return undefined;
  }
}

async function removeStale(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    const pid = Number(FILE_NAME.exec(name)?.[1]);
    if (pid !== process.pid && !isProcessAlive(pid)) await rm(join(folder, name), { force: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => FILE_NAME.test(name)).toSorted();
}

function freeName(folder: string, pid: number): string {
  for (let number = 1; ; number++) {
    const file = join(folder, number === 1 ? `${pid}.json` : `${pid}-${number}.json`);
    if (!ownFiles.has(file)) return file;
  }
}
