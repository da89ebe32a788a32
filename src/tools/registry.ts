/** ToolRegistry: the in-process tools of a hub, by name, in the order in which they were registered. */
import { Emitter } from "../model/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Source } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import { FactoryTools, type ToolContext, type ToolFactory } from "./factory.ts";
import { LocalSource } from "./source.ts";
import { checkNotReserved, checkParameters, checkToolShape } from "./tool-shape.ts";

export type { ToolContext, ToolFactory } from "./factory.ts";

export interface RegistryEvents {
  /** Names that are new or gone, in the default context. */
  change: { readonly added: readonly string[]; readonly removed: readonly string[] };
  /** Something that was left out, such as a tool of a factory that failed. */
  warning: { readonly message: string };
}

export interface RegisterOptions {
  /** `mcp` marks a tool mirrored in from an MCP server: listed here, but not offered again by `source()`. */
  readonly origin?: "local" | "mcp";
}

export interface RegisterFactoryOptions {
  /** What warnings call the factory. */
  readonly label?: string;
}

interface Listed {
  readonly tool: Tool;
  readonly origin: "local" | "mcp";
}

type Entry = (Listed & { readonly kind: "tool" }) | { readonly kind: "factory"; readonly tools: FactoryTools };

const DEFAULT_CONTEXT: ToolContext = { owner: true };

/**
 * @example
 * const registry = new ToolRegistry();
 * registry.register({ name: "now", description: "The time.", parameters: { type: "object" },
 *   execute: async () => ({ content: [{ type: "text", text: new Date().toISOString() }] }) });
 */
export class ToolRegistry {
  readonly #events = new Emitter<RegistryEvents>();
  readonly #entries = new Set<Entry>();

  on<Name extends keyof RegistryEvents>(name: Name, listener: (event: RegistryEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  /** The returned function unregisters this very tool and nothing that took its name later. */
  register(tool: Tool, options: RegisterOptions = {}): () => void {
    const origin = options.origin ?? "local";
    checkToolShape(tool);
    if (origin === "local") {
      checkNotReserved(tool);
      checkParameters(tool);
    }
    if (this.get(tool.name) !== undefined) {
      throw new ToolcribError("conflict", `A tool named "${tool.name}" is already registered.`, {
        hint: "Unregister it first, or choose another name.",
      });
    }
    return this.#add({ kind: "tool", tool, origin });
  }

  /** Tools that are made anew for each context, so that they can know their session. */
  registerFactory(factory: ToolFactory, options: RegisterFactoryOptions = {}): () => void {
    if (typeof factory !== "function")
      throw new ToolcribError("invalid_arguments", "A tool factory must be a function.");
    const label = options.label ?? "A tool factory";
    const warn = (message: string): void => this.#events.emit("warning", { message });
    const tools = new FactoryTools(factory, label, warn);
    for (const { name } of tools.for(DEFAULT_CONTEXT)) {
      if (this.get(name) !== undefined) warn(`${label}: the name "${name}" is taken; its tool is left out.`);
    }
    return this.#add({ kind: "factory", tools });
  }

  /** False if no tool of that name was registered by itself; tools of a factory go with their factory. */
  unregister(name: string): boolean {
    for (const entry of this.#entries) {
      if (entry.kind === "tool" && entry.tool.name === name) return this.#remove(entry);
    }
    return false;
  }

  get(name: string, context: ToolContext = DEFAULT_CONTEXT): Tool | undefined {
    return this.#find(name, context)?.tool;
  }

  /** Like `get`, but not for tools mirrored in from MCP servers. */
  getLocal(name: string, context: ToolContext): Tool | undefined {
    const found = this.#find(name, context);
    return found?.origin === "local" ? found.tool : undefined;
  }

  list(context: ToolContext = DEFAULT_CONTEXT): Tool[] {
    return this.#resolved(context).map(({ tool }) => tool);
  }

  /** The tools that `source()` offers: all but those mirrored in from MCP servers. */
  localTools(context: ToolContext = DEFAULT_CONTEXT): Tool[] {
    return this.#resolved(context).flatMap(({ tool, origin }) => (origin === "local" ? [tool] : []));
  }

  get size(): number {
    return this.#resolved(DEFAULT_CONTEXT).length;
  }

  isOwnerOnly(name: string): boolean {
    return this.get(name)?.ownerOnly === true;
  }

  /** Drops what factories made for a session that has ended. */
  forgetContext(sessionId: string): void {
    for (const entry of this.#entries) if (entry.kind === "factory") entry.tools.forget(sessionId);
  }

  /** The registry as the catalog sees it. */
  source(): Source {
    return new LocalSource(this);
  }

  #add(entry: Entry): () => void {
    const before = this.#names();
    this.#entries.add(entry);
    this.#announce(before);
    return () => {
      this.#remove(entry);
    };
  }

  #remove(entry: Entry): boolean {
    const before = this.#names();
    if (!this.#entries.delete(entry)) return false;
    this.#announce(before);
    return true;
  }

  #announce(before: ReadonlySet<string>): void {
    const after = this.#names();
    const added = [...after].filter((name) => !before.has(name));
    const removed = [...before].filter((name) => !after.has(name));
    if (added.length > 0 || removed.length > 0) this.#events.emit("change", { added, removed });
  }

  #names(): Set<string> {
    return new Set(this.#resolved(DEFAULT_CONTEXT).map(({ tool }) => tool.name));
  }

  #find(name: string, context: ToolContext): Listed | undefined {
    for (const entry of this.#entries) {
      for (const listed of toolsOf(entry, context)) if (listed.tool.name === name) return listed;
    }
    return undefined;
  }

  /** Of two tools with one name, which only factories can bring about, the one registered first stands. */
  #resolved(context: ToolContext): Listed[] {
    const byName = new Map<string, Listed>();
    for (const entry of this.#entries) {
      for (const listed of toolsOf(entry, context)) {
        if (!byName.has(listed.tool.name)) byName.set(listed.tool.name, listed);
      }
    }
    return [...byName.values()];
  }
}

function toolsOf(entry: Entry, context: ToolContext): readonly Listed[] {
  return entry.kind === "tool" ? [entry] : entry.tools.for(context).map((tool) => ({ tool, origin: "local" }));
}
