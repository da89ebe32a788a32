/** Writes down how far this process's chain has come: at once for a new file and at the end, else once a second at most. */
import type { Clock } from "../../base/clock.ts";
import { type ChainHead, updateHeads } from "./heads.ts";
import type { AuditKeys } from "./key.ts";

const EVERY_MS = 1000;
/** How long a new file or the end may wait for other processes. Otherwise it is tried again a little later. */
const WAIT_MS = 250;
const RETRY_MS = 50;

interface HeadKeeperOptions {
  readonly dir: string;
  readonly chain: string;
  readonly clock: Clock;
  readonly keys: AuditKeys;
  /** The heads of other chains, or our own from before, are not there any more or cannot be relied on. */
  readonly onLost: (what: LostHeads) => void;
  /** The heads of plain chains are signed from now on. */
  readonly onKeyed: () => void;
  /** Told once. */
  readonly onProblem: (message: string) => void;
}

/** `foreign`: signed with a key that is not known. */
export type LostHeads = "missing" | "damaged" | "foreign";

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
  #hasWarned = false;

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

  /** Writes what waits for the timer. */
  settle(): void {
    if (this.#cancel !== undefined) this.#write(WAIT_MS);
  }

  /** Ends the timer, so that nothing is written any more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #write(waitMs: number): void {
    this.stop();
    const { dir, chain, clock, keys } = this.#options;
    const [head, pruned] = [this.#head, new Set(this.#pruned)];
    if (head === undefined) return;
    try {
      const { written, before, lacksKey } = updateHeads(
        dir,
        (heads) => {
          for (const [other, { file, key }] of heads) {
            // Of a keyed chain only who can sign what is left.
            if (pruned.has(file) && (key === undefined || keys.current !== undefined)) heads.delete(other);
          }
          // Last in the order, as the newest.
          heads.delete(chain);
          heads.set(chain, head);
        },
        waitMs,
        keys,
      );
      if (!written) {
        if (!head.closed) this.#cancel = clock.after(RETRY_MS, () => this.#write(0));
        return;
      }
      this.#writtenFile = head.file;
      this.#pruned = [];
      if (lacksKey === true) this.#warnOfKey();
      if (before === "unsigned") this.#options.onKeyed();
      else if (before === "damaged" || before === "foreign" || (before === "missing" && this.#isExpected)) {
        this.#options.onLost(before);
      } else if (before === "missing") this.#foundNone = true;
      this.#isExpected = true;
    } catch (error) {
      this.#fail(error);
    }
  }

  #warnOfKey(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { dir, onProblem } = this.#options;
    onProblem(
      `The audit log in ${dir} is keyed, and this process writes to it without a key. Set \`audit.key\` in its config; toolcrib audit verify reports its chain.`,
    );
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.onProblem(`It cannot be written down how far the audit log has come: ${reason}`);
  }
}
