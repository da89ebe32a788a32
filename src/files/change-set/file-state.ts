/** What stands at a path right now. */
import { createHash } from "node:crypto";
import { lstat, open } from "node:fs/promises";
import { dirname } from "node:path";
import { ToolcribError } from "../../model/errors.ts";

export interface FileState {
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly mode: number;
}

/** Null if there is no file. Refuses what is no file. */
export async function readState(path: string): Promise<FileState | null> {
  const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw cannot("read", path, error);
  });
  if (handle === null) return null;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new ToolcribError("invalid_config", `${path} is no file`);
    const bytes = await handle.readFile();
    return { bytes, digest: digestOf(bytes), mode: stats.mode & 0o7777 };
  } finally {
    await handle.close();
  }
}

export function digestOf(contents: string | Uint8Array): string {
  return createHash("sha256").update(contents).digest("hex");
}

/** Bytes that would not come back as they were are refused, as reading and writing them would spoil the file. */
export function textOf(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new ToolcribError("invalid_config", `${path} is not UTF-8 text`, {
      hint: "Save it as UTF-8; it was left alone.",
      cause: error,
    });
  }
}

/** A symbolic link counts as itself. */
export async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

/** The folders of a path that do not exist, outermost first. */
export async function missingFolders(folder: string): Promise<string[]> {
  const missing: string[] = [];
  for (let at = folder; !(await isThere(at)) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing;
}

export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

export function cannot(what: "read" | "written", path: string, error: NodeJS.ErrnoException): ToolcribError {
  const reason = error.code ?? "unknown error";
  return new ToolcribError("invalid_config", `${path} cannot be ${what}: ${reason}`, { cause: error });
}
