import type { SessionNotice } from "./own-parts.ts";

const MOST = 100;

/** What a session was told, the latest so many. No text of it holds a secret. */
export class Notices {
  readonly #mask: <Value>(value: Value) => Value;
  readonly #onNotice: (notice: SessionNotice) => void;
  readonly #list: SessionNotice[] = [];

  constructor(mask: <Value>(value: Value) => Value, onNotice: (notice: SessionNotice) => void) {
    this.#mask = mask;
    this.#onNotice = onNotice;
  }

  get list(): readonly SessionNotice[] {
    return [...this.#list];
  }

  readonly tell = (given: SessionNotice): void => {
    const notice = Object.freeze(this.#mask({ ...given }));
    this.#list.push(notice);
    if (this.#list.length > MOST) this.#list.shift();
    this.#onNotice(notice);
  };
}
