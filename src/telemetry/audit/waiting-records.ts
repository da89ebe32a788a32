/** Records that are not written yet, oldest first. */
export class WaitingRecords {
  readonly #bodies: string[] = [];
  #length = 0;

  get count(): number {
    return this.#bodies.length;
  }

  /** Of all their texts together. */
  get length(): number {
    return this.#length;
  }

  add(body: string): void {
    this.#bodies.push(body);
    this.#length += body.length;
  }

  /** In front of all others. */
  putFirst(bodies: readonly string[]): void {
    this.#bodies.unshift(...bodies);
    for (const body of bodies) this.#length += body.length;
  }

  /** The oldest, which wait no longer. */
  take(count: number): string[] {
    const taken = this.#bodies.splice(0, count);
    for (const body of taken) this.#length -= body.length;
    return taken;
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#bodies[Symbol.iterator]();
  }
}
