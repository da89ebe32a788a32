const MAX_PATH = 100;

/** What normalising changed or lost, said once for each kind of change with the first place where it happened. */
export class Notes {
  readonly #places = new Map<string, Set<string>>();

  add(text: string, path: string): void {
    const places = this.#places.get(text);
    if (places === undefined) this.#places.set(text, new Set([path]));
    else places.add(path);
  }

  list(): string[] {
    return [...this.#places].map(([text, places]) => {
      const [first = ""] = places;
      const more = places.size > 1 ? ` and ${places.size - 1} more` : "";
      const where = first.length > MAX_PATH ? `${first.slice(0, MAX_PATH)}…` : first;
      return `${where === "" ? "/" : where}${more}: ${text}`;
    });
  }
}
