/** Remembers which protocol era a server speaks, so that the next start need not probe for it. */
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeAtomic } from "../files/write-atomic.ts";
import { isJsonObject } from "../model/json.ts";
import type { Era } from "../model/protocol.ts";
import { sandboxImageOf, type ServerSpec } from "../model/server-spec.ts";

export interface EraMemory {
  get(key: string): Promise<Era | undefined>;
  /** Never rejects: a memory that cannot be written only costs a probe next time. */
  set(key: string, era: Era): Promise<void>;
}

/** Made of the spec's text with its references unresolved, so that no secret goes into it. */
export function eraKey(spec: ServerSpec): string {
  // An image may be the whole of what is started.
  const program = spec.command ?? sandboxImageOf(spec.sandbox);
  const identity =
    spec.url === undefined ? ["stdio", program, ...(spec.args ?? [])] : [spec.transport ?? "url", spec.url];
  return createHash("sha256").update(JSON.stringify(identity)).digest("hex").slice(0, 32);
}

export class InMemoryEras implements EraMemory {
  readonly #eras = new Map<string, Era>();

  get(key: string): Promise<Era | undefined> {
    return Promise.resolve(this.#eras.get(key));
  }

  set(key: string, era: Era): Promise<void> {
    this.#eras.set(key, era);
    return Promise.resolve();
  }
}

/**
 * One small JSON file that several processes share: read again before each write, replaced in one step. Servers that start together
 * share one reading and one write.
 */
export class FileEraMemory implements EraMemory {
  readonly #file: string;
  /** As last read or written. */
  #known: ReadonlyMap<string, Era> = new Map();
  #reading: Promise<ReadonlyMap<string, Era>> | undefined;
  readonly #unwritten = new Map<string, Era>();
  #writing: Promise<void> | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async get(key: string): Promise<Era | undefined> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    this.#known = await this.#reading;
    return this.#known.get(key);
  }

  async set(key: string, era: Era): Promise<void> {
    if (this.#known.get(key) === era) return;
    this.#unwritten.set(key, era);
    while (this.#unwritten.get(key) === era) {
      this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
      await this.#writing;
    }
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const eras = await this.#read();
    const fresh = [...this.#unwritten].filter(([key, era]) => eras.get(key) !== era);
    this.#unwritten.clear();
    for (const [key, era] of fresh) eras.set(key, era);
    this.#known = eras;
    if (fresh.length === 0) return;
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeAtomic(this.#file, `${JSON.stringify(Object.fromEntries(eras), null, 2)}\n`, { mode: 0o600 });
    } catch {
      // It costs a probe next time.
    }
  }

  /** A missing or broken file is an empty memory. */
  async #read(): Promise<Map<string, Era>> {
    const eras = new Map<string, Era>();
    try {
      const content: unknown = JSON.parse(await readFile(this.#file, "utf8"));
      if (!isJsonObject(content)) return eras;
      for (const [key, era] of Object.entries(content)) if (era === "legacy" || era === "modern") eras.set(key, era);
    } catch {
      return eras;
    }
    return eras;
  }
}
