/** The last warnings about a server, each once: what `status` shows. */
const KEPT = 20;

export class RecentWarnings {
  #list: readonly string[] = [];

  get list(): readonly string[] {
    return this.#list;
  }

  add(text: string): void {
    if (!this.#list.includes(text)) this.#list = [...this.#list, text].slice(-KEPT);
  }

  clear(): void {
    this.#list = [];
  }
}
