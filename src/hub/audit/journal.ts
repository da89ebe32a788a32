import { hostname } from "node:os";
import type { SeenFile } from "../../telemetry/audit/record.ts";

/** The log that this process writes, as those see it who take it into a store. */
export interface Journal {
  readonly chain: string;
  /** The file that is written to; the others of the chain have ended. */
  readonly currentFile: string | undefined;
  /** How large a file gets. */
  readonly fileBytes: number;
  /** There were others before, who must have left their heads. */
  expectHeads(): void;
  /** Says that files go by intention. False if that cannot be written: then they must stay. */
  prune(files: readonly SeenFile[]): boolean;
  /** Begins another file if this one is old. */
  renew(): void;
}

/** The setting that says that somebody has written to the journal in this folder. */
export function journalKey(dir: string): string {
  return `audit.journal ${hostname()} ${dir}`;
}
