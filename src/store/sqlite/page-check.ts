/** Checks all pages of a large database in a process of its own: here it would hold everything up for a second and more. */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import type { Database } from "better-sqlite3";
import type { Clock } from "../../model/clock.ts";
import type { ToolcribError } from "../../model/errors.ts";
import { FULL_CHECK_BYTES, sizeOf } from "./file-check.ts";
import { corruptDatabase } from "./sqlite-errors.ts";

/** Commands have ended by then. */
const BEGIN_MS = 5000;

/** Prints the verdict. Whatever else goes wrong here is no verdict. */
const CHECK = `
  const [file, sqlite] = process.argv.slice(1);
  const db = new (require(sqlite))(file, { readonly: true });
  try {
    process.stdout.write(String(db.pragma("quick_check(1)", { simple: true })));
  } catch (error) {
    if (String(error.code).startsWith("SQLITE_CORRUPT")) process.stdout.write(error.message);
  }
`;

interface PageCheckOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export class PageCheck {
  readonly #database: Database;
  readonly #file: string;
  readonly #warn: (message: string) => void;
  #found: ToolcribError | undefined;
  #stop: () => void;

  constructor(database: Database, file: string, { clock, warn }: PageCheckOptions) {
    this.#database = database;
    this.#file = file;
    this.#warn = warn;
    this.#stop = clock.after(BEGIN_MS, () => void this.#check());
  }

  /** The damage, once it is known; from then on nothing is written. */
  get found(): ToolcribError | undefined {
    return this.#found;
  }

  stop(): void {
    this.#stop();
  }

  async #check(): Promise<void> {
    if ((await sizeOf(this.#file)) <= FULL_CHECK_BYTES || !this.#database.open) return;
    const module = createRequire(import.meta.url).resolve("better-sqlite3");
    const child = spawn(process.execPath, ["-e", CHECK, this.#file, module], {
      stdio: ["ignore", "pipe", "ignore"],
      windowsHide: true,
    });
    this.#stop = () => void child.kill();
    // A place where nothing can be started is one where this is not checked.
    child.on("error", () => {});
    child.unref();
    const verdict = (await text(child.stdout).catch(() => "")).replaceAll("\n", " ").trim();
    if (verdict === "" || verdict === "ok" || !this.#database.open) return;
    this.#database.pragma("query_only = ON");
    this.#found = corruptDatabase(this.#file, verdict);
    this.#warn(`${this.#found.message} Nothing more is written to it. ${this.#found.hint ?? ""}`.trim());
  }
}
