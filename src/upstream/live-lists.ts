/** The definitions of one server, kept in step with what the server announces. */
import type { Clock } from "../model/clock.ts";
import { type Definitions, NO_DEFINITIONS } from "../model/source.ts";
import { Coalescer } from "./coalescer.ts";
import { LIST_KINDS, type ListKind, readKind } from "./discovery.ts";
import type { Link } from "./link.ts";

/** Servers announce changes in bursts, one per tool. */
const PAUSE_MS = 50;

interface LiveListsOptions {
  readonly clock: Clock;
  readonly timeoutMs: () => number;
  readonly warn: (text: string) => void;
  /** Applied to every list as it comes in, so that no one behind it sees a secret. Returns the same object if nothing changed. */
  readonly mask: <Lists>(lists: Lists) => Lists;
  readonly onChange: () => void;
}

export class LiveLists {
  readonly #options: LiveListsOptions;
  readonly #readers: ReadonlyMap<ListKind, Coalescer>;
  #link: Link | undefined;
  #definitions: Definitions = NO_DEFINITIONS;
  /** While all lists are read together, one change is told for all of them. */
  #together = 0;
  #changed = false;
  /** The kinds for which it was said that they contain a secret. */
  readonly #leaky = new Set<ListKind>();

  constructor(options: LiveListsOptions) {
    this.#options = options;
    this.#readers = new Map(
      LIST_KINDS.map((kind) => [kind, new Coalescer(options.clock, PAUSE_MS, () => this.#read(kind))] as const),
    );
  }

  get definitions(): Definitions {
    return this.#definitions;
  }

  findTool(name: string): Definitions["tools"][number] | undefined {
    // Of duplicates the last one counts, as in the catalog.
    return this.#definitions.tools.findLast((tool) => tool.name === name);
  }

  /** Reads everything from a new link; what is listed stays until then. */
  async adopt(link: Link): Promise<void> {
    this.#link = link;
    await this.readAll();
  }

  async readAll(): Promise<void> {
    this.#together++;
    await Promise.all(LIST_KINDS.map((kind) => this.readNow(kind)));
    this.#together--;
    this.#tell();
  }

  async readNow(kind: ListKind): Promise<void> {
    await this.#readers.get(kind)?.now();
  }

  /** The server said that this list changed. */
  announce(kind: ListKind): void {
    this.#readers.get(kind)?.trigger();
  }

  /** Stops reading; what is listed stays. */
  release(): void {
    this.#link = undefined;
    for (const reader of this.#readers.values()) reader.stop();
  }

  clear(): void {
    this.release();
    if (this.#definitions === NO_DEFINITIONS) return;
    this.#definitions = NO_DEFINITIONS;
    this.#options.onChange();
  }

  async #read(kind: ListKind): Promise<void> {
    const link = this.#link;
    if (link === undefined) return;
    const { clock, timeoutMs, warn, mask } = this.#options;
    const read = await readKind(link, kind, {
      clock,
      timeoutMs: timeoutMs(),
      warn: (text) => link === this.#link && warn(text),
    });
    // Meanwhile another link may have taken over.
    if (link !== this.#link) return;
    const lists = mask(read);
    if (lists !== read && !this.#leaky.has(kind)) {
      this.#leaky.add(kind);
      warn(`Its ${kind} list contains a secret that the hub knows. It is masked there and in everything made from it.`);
    }
    this.#definitions = { ...this.#definitions, ...lists };
    this.#changed = true;
    this.#tell();
  }

  #tell(): void {
    if (this.#together > 0 || !this.#changed) return;
    this.#changed = false;
    this.#options.onChange();
  }
}
