/** Results that were too long to return whole. They can be read until the session, or the process, needs the memory. */
import type { JsonObject } from "../model/json.ts";
import type { ReadResourceResult } from "../model/protocol.ts";

const PREFIX = "toolcrib://results/";
const MAX_SESSION_BYTES = 64 * 1024 * 1024;
const MAX_PROCESS_BYTES = 256 * 1024 * 1024;

export interface KeptAs {
  /** Of the text; plain by default. */
  readonly mimeType?: string;
  /** The `_meta` of a read, such as the mark of untrusted content. */
  readonly meta?: JsonObject | undefined;
}

interface Kept extends KeptAs {
  readonly text: string;
  readonly bytes: number;
  readonly forget: () => void;
}

/** The memory that the kept results of several sessions share. The oldest texts are evicted. */
export class ResultBudget {
  readonly #maxBytes: number;
  readonly #kept = new Set<Kept>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(kept: Kept): void {
    this.#kept.add(kept);
    this.#bytes += kept.bytes;
    for (const oldest of this.#kept) {
      if (this.#bytes <= this.#maxBytes || oldest === kept) break;
      oldest.forget();
    }
  }

  remove(kept: Kept): void {
    if (this.#kept.delete(kept)) this.#bytes -= kept.bytes;
  }
}

/** Memory is the process's, whichever hub a session belongs to. */
const processBudget = new ResultBudget(MAX_PROCESS_BYTES);

/** The source that kept results are read from; no server can have it as its id. */
export const RESULTS_SOURCE = "toolcrib:results";

export class KeptResults {
  readonly #room: ResultBudget;
  readonly #nameOf: (id: string) => string;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** @param nameOf What a result is called in its URI. */
  constructor(room: ResultBudget = processBudget, nameOf: (id: string) => string = (id) => id) {
    this.#room = room;
    this.#nameOf = nameOf;
  }

  /** Keeps a text and returns the URI under which this session can read it. Oldest texts make room for new ones. */
  keep(id: string, text: string, as: KeptAs = {}): string {
    const uri = `${PREFIX}${this.#nameOf(id)}`;
    this.#forget(uri);
    const kept: Kept = { ...as, text, bytes: Buffer.byteLength(text), forget: () => this.#forget(uri) };
    this.#kept.set(uri, kept);
    this.#bytes += kept.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= MAX_SESSION_BYTES || oldest === uri) break;
      this.#forget(oldest);
    }
    this.#room.add(kept);
    return uri;
  }

  read(uri: string): ReadResourceResult | undefined {
    const kept = this.#kept.get(uri);
    if (kept === undefined) return undefined;
    const { text, mimeType = "text/plain", meta } = kept;
    return { contents: [{ uri, mimeType, text }], _meta: meta };
  }

  clear(): void {
    for (const uri of [...this.#kept.keys()]) this.#forget(uri);
  }

  #forget(uri: string): void {
    const kept = this.#kept.get(uri);
    if (kept === undefined) return;
    this.#kept.delete(uri);
    this.#bytes -= kept.bytes;
    this.#room.remove(kept);
  }

  static owns(uri: string): boolean {
    return uri.startsWith(PREFIX);
  }

  /** Undefined for the URI of something else. */
  static idOf(uri: string): string | undefined {
    return KeptResults.owns(uri) ? uri.slice(PREFIX.length) : undefined;
  }
}
