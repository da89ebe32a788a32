/** A server of a session, as its catalog sees it: with no more tools than it may bring. */
import { Emitter } from "../../model/emitter.ts";
import type { Result } from "../../model/protocol.ts";
import type { Definitions, Source, Use, UseContext } from "../../model/source.ts";

interface CappedSourceEvents {
  /** Called before anybody is told of other definitions, so that the caps are right by then. */
  readonly onCount: () => void;
  /** A use has ended; undefined if it went well. */
  readonly onRun: (error: unknown) => void;
}

export class CappedSource implements Source {
  readonly id: string;
  readonly kind = "server";
  readonly #source: Source;
  readonly #onRun: CappedSourceEvents["onRun"];
  readonly #events = new Emitter<{ change: undefined }>();
  readonly #stop: () => void;
  #cap = Infinity;
  /** What was made of which definitions. */
  #cut: { readonly of: Definitions; readonly cap: number; readonly definitions: Definitions } | undefined;

  constructor(source: Source, { onCount, onRun }: CappedSourceEvents) {
    this.id = source.id;
    this.#onRun = onRun;
    this.#source = source;
    this.#stop = source.onChange(() => {
      onCount();
      this.#events.emit("change", undefined);
    });
  }

  /** How many tools it has, whatever the cap. */
  get count(): number {
    return this.#source.definitions().tools.length;
  }

  /** How many of them are left out. */
  get leftOut(): number {
    return Math.max(0, this.count - this.#cap);
  }

  setCap(cap: number): void {
    const before = this.leftOut;
    this.#cap = cap;
    if (this.leftOut !== before) this.#events.emit("change", undefined);
  }

  definitions(): Definitions {
    const of = this.#source.definitions();
    if (this.leftOut === 0) return of;
    if (this.#cut?.of !== of || this.#cut.cap !== this.#cap) {
      this.#cut = { of, cap: this.#cap, definitions: { ...of, tools: of.tools.slice(0, this.#cap) } };
    }
    return this.#cut.definitions;
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    try {
      const result = await this.#source.run(use, context);
      this.#onRun(undefined);
      return result;
    } catch (error) {
      this.#onRun(error);
      throw error;
    }
  }

  endSession(sessionId: string): void {
    this.#source.endSession?.(sessionId);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("change", listener);
  }

  close(): void {
    this.#stop();
    this.#events.clear();
  }
}
