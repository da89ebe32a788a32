import type { ToolDefinition } from "../../src/model/protocol.ts";
import { type Definitions, NO_DEFINITIONS, type Source } from "../../src/model/source.ts";

/** A Source whose lists a test sets. */
export class FakeSource implements Source {
  readonly id: string;
  readonly kind: "server" | "local";
  reads = 0;
  #definitions: Definitions;
  readonly #listeners = new Set<() => void>();

  constructor(id: string, offer: Partial<Definitions> = {}, kind: "server" | "local" = "server") {
    this.id = id;
    this.kind = kind;
    this.#definitions = { ...NO_DEFINITIONS, ...offer };
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  definitions(): Definitions {
    this.reads += 1;
    return this.#definitions;
  }

  set(offer: Partial<Definitions>): void {
    this.#definitions = { ...NO_DEFINITIONS, ...offer };
    for (const listener of this.#listeners) listener();
  }

  run(): Promise<never> {
    return Promise.reject(new Error("The catalog runs nothing."));
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function tool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return { name, inputSchema: { type: "object" }, ...more };
}

export function tools(...names: string[]): Partial<Definitions> {
  return { tools: names.map((name) => tool(name)) };
}
