/** How many calls of a door's clients are under way, for a shutdown that lets them finish. */
export class CallCount {
  #size = 0;
  #waiting: (() => void)[] = [];

  get size(): number {
    return this.#size;
  }

  begin(): void {
    this.#size += 1;
  }

  end(): void {
    this.#size -= 1;
    if (this.#size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  whenIdle(): Promise<void> {
    return this.#size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
