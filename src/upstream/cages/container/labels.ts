/** What containers of ours are known by. */
import { createHash, randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { systemProcessTable } from "../../orphans/process-table.ts";

export interface ContainerLabels {
  readonly "toolcrib.server": string;
  /** One hub process; see HubMark. */
  readonly "toolcrib.hub": string;
  readonly "toolcrib.pid": string;
  /** A hash of the hub's home: another home's containers are not ours to touch. */
  readonly "toolcrib.home": string;
}

/** Names this process for good: a pid alone may come back. */
export interface HubMark {
  readonly id: string;
  readonly pid: number;
  readonly startTime: string;
  /** The boot and pid namespace in which the pid means something. */
  readonly place: string;
}

export function hubMark(table = systemProcessTable()): HubMark {
  const pid = process.pid;
  const startTime = table?.find(pid)?.startTime ?? "";
  const place = table?.place ?? "";
  const id = createHash("sha256").update(`${place}\n${pid}\n${startTime}`).digest("hex").slice(0, 16);
  return { id, pid, startTime, place };
}

export function containerLabels(serverId: string, home: string, mark: HubMark): ContainerLabels {
  return {
    "toolcrib.server": serverId,
    "toolcrib.hub": mark.id,
    "toolcrib.pid": String(mark.pid),
    "toolcrib.home": homeHash(home),
  };
}

export function homeHash(home: string): string {
  let real = home;
  try {
    real = realpathSync(home);
  } catch {
    // Not made yet; its own name has to do.
  }
  return createHash("sha256").update(real).digest("hex").slice(0, 16);
}

/** For people who look at a list of containers. */
export function containerName(serverId: string): string {
  const plain = serverId.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `toolcrib-${plain.replaceAll(/^-|-$/g, "").slice(0, 40) || "server"}-${randomBytes(5).toString("hex")}`;
}
