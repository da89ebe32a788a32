/** Shows audit records as they are written, until a signal. */
import type { AuditFile } from "../../telemetry/audit/files.ts";
import { type AuditFilter, matchesFilter } from "../../telemetry/audit/filter.ts";
import type { AuditEntry } from "../../telemetry/audit/read.ts";
import { AuditTail } from "../../telemetry/audit/tail.ts";

const POLL_MS = 250;

/** Polled, because a watch on a folder says nothing of growing files on some platforms. Resolves after a signal. */
export async function follow(
  dir: string,
  from: readonly AuditFile[],
  filter: AuditFilter,
  show: (entry: AuditEntry) => void,
): Promise<void> {
  const tail = new AuditTail(dir, from);
  const signal = signalled();
  for (let isOver = false; !isOver; isOver = await signal.within(POLL_MS)) {
    for (const entry of tail.poll()) if (matchesFilter(entry.record, filter)) show(entry);
  }
}

function signalled(): { within(ms: number): Promise<boolean> } {
  let isOver = false;
  let wake = (): void => {};
  const stop = (): void => {
    isOver = true;
    wake();
  };
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  // The reader of the pipe has gone: nobody is left to show anything to.
  process.stdout.once("error", stop);
  return {
    within: (ms) =>
      new Promise((resolve) => {
        if (isOver) return resolve(true);
        const timer = setTimeout(() => resolve(false), ms);
        wake = () => {
          clearTimeout(timer);
          resolve(true);
        };
      }),
  };
}
