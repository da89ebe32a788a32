/** Where grants are kept: one file each, for the owner's eyes only, changed under a lock between processes. */
import { createHash } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { type Grant, GrantSchema } from "./grant.ts";

/** Whose grant it is. The same server at another address is another one, and so is another user. */
export interface GrantKey {
  readonly server: string;
  readonly url: string;
  readonly user?: string | undefined;
}

/** A refresh asks two endpoints for up to twenty seconds each; whoever waits for it must wait longer. */
const LOCK_WAIT_MS = 60_000;

export class GrantStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  fileOf({ server, url, user }: GrantKey): string {
    const hash = createHash("sha256")
      .update(JSON.stringify([server, addressOf(url), user ?? null]))
      .digest("hex");
    return join(this.#dir, `${hash.slice(0, 32)}.json`);
  }

  /** Undefined also for a file that is unreadable or another key's: then somebody logs in again. */
  async read(key: GrantKey): Promise<Grant | undefined> {
    const grant = await readGrant(this.fileOf(key));
    const isOwn = grant?.server === key.server && grant.url === addressOf(key.url) && grant.user === key.user;
    return isOwn ? grant : undefined;
  }

  async list(): Promise<Grant[]> {
    const names = await readdir(this.#dir).catch(() => []);
    const grants = await Promise.all(
      names.filter((name) => /^[0-9a-f]{32}\.json$/.test(name)).map((name) => readGrant(join(this.#dir, name))),
    );
    return grants
      .filter((grant) => grant !== undefined)
      .toSorted((a, b) => a.server.localeCompare(b.server) || (a.user ?? "").localeCompare(b.user ?? ""));
  }

  /** No other process, and no other hub of this one, is in a task on the same grant. */
  async locked<T>(key: GrantKey, task: () => Promise<T>): Promise<T> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await chmod(this.#dir, 0o700);
    return withLock(this.fileOf(key), task, { waitMs: LOCK_WAIT_MS });
  }

  /** Inside `locked` only. */
  async write(grant: Grant): Promise<void> {
    await writeAtomic(this.fileOf(grant), `${JSON.stringify(grant, null, 2)}\n`, { mode: 0o600 });
  }

  /** Inside `locked` only. */
  async remove(key: GrantKey): Promise<void> {
    await rm(this.fileOf(key), { force: true });
  }
}

/** Without user, password, query and fragment. */
export function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

async function readGrant(file: string): Promise<Grant | undefined> {
  try {
    // An older program, a backup or a careless hand may have opened it up; writing keeps the mode that is there.
    if (((await stat(file)).mode & 0o077) !== 0) await chmod(file, 0o600);
    return GrantSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch {
    return undefined;
  }
}
