/** Failures of SQLite as errors that say what to do. */
import { ToolcribError } from "../../model/errors.ts";

export function sqliteCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

export function isBusy(error: unknown): boolean {
  return sqliteCode(error).startsWith("SQLITE_BUSY");
}

interface Circumstances {
  readonly cause?: unknown;
  /** What the hint begins with. */
  readonly before?: string;
}

export function corruptDatabase(file: string, why: string, { cause, before = "" }: Circumstances = {}): ToolcribError {
  return new ToolcribError("invalid_config", `The database ${file} is damaged: ${why}.`, {
    hint: `${before}Bring back a copy with "toolcrib restore <file> --force", or move ${file} away to begin with an empty one.`,
    details: { file },
    cause,
  });
}

/** What callers of the store get for what better-sqlite3 throws. */
export function sqliteFailure(file: string, error: unknown): Error {
  const code = sqliteCode(error);
  const text = error instanceof Error ? error.message : String(error);
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB")
    return corruptDatabase(file, text, { cause: error });
  const known = FAILURES.find(({ codes }) => codes.some((each) => code === each || code.startsWith(`${each}_`)));
  if (known !== undefined) {
    return new ToolcribError("server_unavailable", `The database ${file} ${known.what} (${text}).`, {
      hint: known.hint,
      details: { file },
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(text);
}

const FAILURES = [
  {
    codes: ["SQLITE_BUSY", "SQLITE_LOCKED"],
    what: "is held by another process",
    hint: "Try again. If it stays so, look for a process that hangs in the middle of a write.",
  },
  { codes: ["SQLITE_FULL"], what: "cannot grow", hint: "Free some space on its disk." },
  {
    codes: ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"],
    what: "cannot be opened for writing",
    hint: "Check who owns the file and its folder, or set TOOLCRIB_HOME to a folder that can be written.",
  },
  { codes: ["SQLITE_IOERR"], what: "cannot be read or written", hint: "Check the disk that it is on." },
] as const;
