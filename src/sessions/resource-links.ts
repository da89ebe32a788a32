/** Which source gave a session the link to a resource that no source lists: whoever gave it can read it. */
const MOST = 1000;
const LONGEST = 4096;

export class ResourceLinks {
  /** From public URI to source, the latest last. */
  readonly #sources = new Map<string, string>();

  get size(): number {
    return this.#sources.size;
  }

  /** The oldest makes room. What is too long to be an address is not remembered. */
  add(uri: string, source: string): void {
    if (uri.length > LONGEST) return;
    this.#sources.delete(uri);
    this.#sources.set(uri, source);
    if (this.#sources.size <= MOST) return;
    for (const oldest of this.#sources.keys()) {
      this.#sources.delete(oldest);
      return;
    }
  }

  sourceOf(uri: string): string | undefined {
    return this.#sources.get(uri);
  }
}
