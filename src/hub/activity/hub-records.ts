/** The files of running hubs, as commands of the same user read them. Small, because the bridge of a stdio client loads it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isProcessAlive, processStart } from "../../files/processes.ts";
import { isJsonObject } from "../../model/json.ts";

export interface HubRecord {
  /** Where it listens, as this machine reaches it. */
  readonly url: string;
  readonly publicUrl?: string;
  readonly pid: number;
  /** As by `processStart`. */
  readonly start?: string | undefined;
  /** Has the scope `admin`. */
  readonly token: string;
  /** Of Toolcrib. */
  readonly version?: string;
  /** The files that name what it serves: the home's config and a project's, or the one that was named. */
  readonly config?: readonly string[];
  /** Whether a client or `toolcrib hub start` started it. */
  readonly background?: boolean;
  /** Whether it is `toolcrib acp`, the agent of an editor: other programs join its sessions, and no client attaches to it. */
  readonly editor?: boolean;
  /** Variables that it wants from its stdio clients. */
  readonly clientEnv?: readonly string[];
}

const FILE_NAME = /^(\d+)(?:-\d+)?\.json$/;

/** Hubs of this home whose process is alive. */
export function readHubRecords(home: string): HubRecord[] {
  const folder = join(home, "hubs");
  return hubFileNames(folder)
    .filter((name) => isProcessAlive(pidOf(name)))
    .flatMap((name) => readRecord(join(folder, name)) ?? [])
    .filter(isOwnProcess);
}

/**
 * Whether the file can be removed. The file of a hub that was killed stays, and another program may have its process id and its port by
 * now: it would get the token, and what clients send.
 */
export function isStale(folder: string, name: string): boolean {
  if (!isProcessAlive(pidOf(name))) return true;
  const record = readRecord(join(folder, name));
  return record !== undefined && !isOwnProcess(record);
}

function isOwnProcess({ pid, start }: HubRecord): boolean {
  return start === undefined || start === processStart(pid);
}

/** The hub that serves a config to any client; the newest if there are several. */
export function findHub(home: string, files: readonly string[]): HubRecord | undefined {
  const wanted = JSON.stringify(files);
  return readHubRecords(home).findLast(({ config, editor }) => editor !== true && JSON.stringify(config) === wanted);
}

export function hubFileNames(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => FILE_NAME.test(name))
      .toSorted();
  } catch {
    return [];
  }
}

export function pidOf(name: string): number {
  return Number(FILE_NAME.exec(name)?.[1]);
}

function readRecord(file: string): HubRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (!isJsonObject(value)) return undefined;
    const { url, publicUrl, pid, start, token, version, config, background, editor, clientEnv } = value;
    if (typeof url !== "string" || typeof pid !== "number" || typeof token !== "string") return undefined;
    return {
      ...{ url, pid, token },
      start: typeof start === "string" ? start : undefined,
      publicUrl: typeof publicUrl === "string" ? publicUrl : undefined,
      version: typeof version === "string" ? version : undefined,
      config: Array.isArray(config) ? config.map(String) : undefined,
      background: background === true,
      editor: editor === true ? true : undefined,
      clientEnv: Array.isArray(clientEnv) ? clientEnv.map(String) : undefined,
    };
  } catch {
    // Gone meanwhile, or not ours to read.
    return undefined;
  }
}
