/** Whole texts of results that were too long to hand to a model, readable until the session needs the room. */
import type { ReadResourceResult } from "../model/protocol.ts";

const PREFIX = "toolcrib://results/";
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;

export class KeptResults {
  readonly #texts = new Map<string, string>();
  #bytes = 0;

  /** Keeps a text and returns the URI under which this session can read it. Oldest texts make room for new ones. */
  keep(id: string, text: string): string {
    const uri = `${PREFIX}${id}`;
    this.#forget(uri);
    this.#texts.set(uri, text);
    this.#bytes += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes <= MAX_TOTAL_BYTES || oldest === uri) break;
      this.#forget(oldest);
    }
    return uri;
  }

  read(uri: string): ReadResourceResult | undefined {
    const text = this.#texts.get(uri);
    return text === undefined ? undefined : { contents: [{ uri, mimeType: "text/plain", text }] };
  }

  clear(): void {
    this.#texts.clear();
    this.#bytes = 0;
  }

  #forget(uri: string): void {
    this.#bytes -= this.#texts.get(uri)?.length ?? 0;
    this.#texts.delete(uri);
  }

  static owns(uri: string): boolean {
    return uri.startsWith(PREFIX);
  }
}
