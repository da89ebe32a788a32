import type { Store } from "./store.ts";

type Open = (options: { readonly create: boolean }) => Promise<Store | undefined>;

/** A store that is opened when it is first needed, and made when something is first written. */
export class LazyStore {
  readonly #open: Open;
  #last: Promise<Store | undefined> = Promise.resolve(undefined);

  constructor(open: Open) {
    this.#open = open;
  }

  /** One after another, so that it is opened once. */
  readonly open: Open = (options) => {
    this.#last = this.#last.catch(() => undefined).then((store) => store ?? this.#open(options));
    return this.#last;
  };

  async close(): Promise<void> {
    const store = await this.#last.catch(() => undefined);
    await store?.close();
  }
}
