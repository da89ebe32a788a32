/**
 * `$TOOLCRIB_HOME/hubs/<pid>.json`: how commands of the same user find a running hub, and the token that lets them in. Only
 * that user can read it.
 */
import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { portOf } from "../../base/network-address.ts";
import { processStart } from "../../files/processes.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { hubFileNames, type HubRecord, isStale, pidOf, readHubRecords } from "./hub-records.ts";

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
    const text = JSON.stringify({ ...record, start: processStart(record.pid) });
    await writeAtomic(file, `${text}\n`, { mode: 0o600 });
  } catch (error) {
    ownFiles.delete(file);
    throw error;
  }
  return async () => {
    await rm(file, { force: true });
    ownFiles.delete(file);
  };
}

/** The ports that hubs of this home listen at. Synchronous: it is asked just before a connection is made. */
export function hubPorts(home: string): ReadonlySet<number> {
  const urls = readHubRecords(home).flatMap(({ url }) => URL.parse(url) ?? []);
  return new Set(urls.map((url) => portOf(url)));
}

async function removeStale(folder: string): Promise<void> {
  for (const name of hubFileNames(folder)) {
    if (pidOf(name) !== process.pid && isStale(folder, name)) await rm(join(folder, name), { force: true });
  }
}

function freeName(folder: string, pid: number): string {
  for (let number = 1; ; number++) {
    const file = join(folder, number === 1 ? `${pid}.json` : `${pid}-${number}.json`);
    if (!ownFiles.has(file)) return file;
  }
}
