/** Writes down how far this process's chain has come: at once for a new file and at the end, else once a second at most. */
import type { Clock } from "../../model/clock.ts";
import { type ChainHead, updateHeads } from "./heads.ts";

const EVERY_MS = 1000;
/** How long a new file or the end may wait for other processes. Otherwise it is tried again a little later. */
const WAIT_MS = 250;
const RETRY_MS = 50;

interface HeadKeeperOptions {
  readonly dir: string;
  readonly chain: string;
  readonly clock: Clock;
  /** The heads of other chains, or our own from before, are not there any more. */
  readonly onLost: (what: "missing" | "damaged") => void;
  /** Told once. */
  readonly onProblem: (message: string) => void;
}

export class HeadKeeper {
  readonly #options: HeadKeeperOptions;
  #head: ChainHead | undefined;
  #writtenFile: string | undefined;
  #isExpected = false;
  /** Nobody had left a head when the first one was written, and none was expected. */
  #foundNone = false;
  #pruned: string[] = [];
  #cancel: (() => void) | undefined;
  #hasFailed = false;

  constructor(options: HeadKeeperOptions) {
    this.#options = options;
  }

  /** There are chains that must have left their heads. */
  expectOthers(): void {
    this.#isExpected = true;
  }

  /** As `expectOthers`, told when the first head may have been written: the file was not there then, but should have been. */
  expectEarlier(): void {
    if (this.#foundNone) this.#options.onLost("missing");
    this.#foundNone = false;
    this.#isExpected = true;
  }

  /** These files are gone by intention; written down with the next head. */
  prune(files: readonly string[]): void {
    this.#pruned.push(...files);
  }

  moved(head: ChainHead): void {
    this.#head = head;
    if (head.closed || head.file !== this.#writtenFile) this.#write(WAIT_MS);
    else this.#cancel ??= this.#options.clock.after(EVERY_MS, () => this.#write(0));
  }

  /** Ends the timer, so that nothing is written any more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #write(waitMs: number): void {
    this.stop();
    const { dir, chain, clock } = this.#options;
    const [head, pruned] = [this.#head, new Set(this.#pruned)];
    if (head === undefined) return;
    try {
      const { written, before } = updateHeads(
        dir,
        (heads) => {
          for (const [other, { file }] of heads) if (pruned.has(file)) heads.delete(other);
          // Last in the order, as the newest.
          heads.delete(chain);
          heads.set(chain, head);
        },
        waitMs,
      );
      if (!written) {
        if (!head.closed) this.#cancel = clock.after(RETRY_MS, () => this.#write(0));
        return;
      }
      this.#writtenFile = head.file;
      this.#pruned = [];
      if (before === "damaged" || (before === "missing" && this.#isExpected)) this.#options.onLost(before);
      else if (before === "missing") this.#foundNone = true;
      this.#isExpected = true;
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.onProblem(`It cannot be written down how far the audit log has come: ${reason}`);
  }
}
