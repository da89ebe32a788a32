/** Names for variables that take the place of secrets: no two secrets get the same. */
export class VariableNames {
  readonly #taken: Set<string>;

  /** @param taken Those that stand for something already. */
  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken);
  }

  /** Made of words that say where the secret stood. */
  next(words: readonly (string | number)[]): string {
    const plain = words
      .join("_")
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, "_")
      .replace(/^_+|_+$/g, "");
    const first = /^\d/.test(plain) ? `_${plain}` : plain;
    let name = first;
    for (let count = 2; this.#taken.has(name); count++) name = `${first}_${count}`;
    this.#taken.add(name);
    return name;
  }
}
