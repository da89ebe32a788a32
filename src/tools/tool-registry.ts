/** ToolRegistry: the in-process tools of a hub, by name, in the order in which they were registered. */
import { Emitter } from "../base/emitter.ts";
import { LOCAL_SOURCE } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import { type Definitions, NO_DEFINITIONS, type Source, type Use, type UseContext } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import { runTool } from "./run-tool.ts";
import { checkNotReserved, checkParameters, checkToolShape } from "./tool-shape.ts";

/** The session that tools are made for. */
export interface ToolContext {
  /** Tools are kept by this id where there is one, by the context object itself otherwise. */
  readonly sessionId?: string;
  readonly role?: string;
  readonly workspaceDir?: string;
  /** True for the user who runs the hub. */
  readonly owner: boolean;
}

/** Makes the tools of one context, or nothing. Must not be async. */
export type ToolFactory = (context: ToolContext) => Tool | readonly Tool[] | null | undefined;

interface RegistryEvents {
  /** Names that are new or gone, in the default context. */
  change: { readonly added: readonly string[]; readonly removed: readonly string[] };
  /** Something was left out, such as a tool of a factory that failed. */
  warning: { readonly message: string };
}

interface RegisterOptions {
  /** `mcp` marks a tool mirrored in from an MCP server: listed here, but not offered again by `source()`. */
  readonly origin?: "local" | "mcp";
}

interface RegisterFactoryOptions {
  /** The name of the factory in warnings. */
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
    if (origin === "local") checkLocalTool(tool);
    else checkToolShape(tool);
    if (this.get(tool.name) !== undefined) {
      throw new ToolcribError("conflict", `A tool named "${tool.name}" is already registered.`, {
        hint: "Unregister it first, or choose another name.",
      });
    }
    return this.#add({ kind: "tool", tool, origin });
  }

  /** Registers a factory that makes tools for each context, so that they can know their session. */
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
    return new LocalToolSource(this);
  }

  #add(entry: Entry): () => void {
    const before = this.#names();
    this.#entries.add(entry);
    this.#announce(before);
    return () => void this.#remove(entry);
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

  /** If two tools have the same name, which only factories can cause, the first one is used. */
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

function checkLocalTool(tool: unknown): asserts tool is Tool {
  checkToolShape(tool);
  checkNotReserved(tool);
  checkParameters(tool);
}

function toolsOf(entry: Entry, context: ToolContext): readonly Listed[] {
  return entry.kind === "tool" ? [entry] : entry.tools.for(context).map((tool) => ({ tool, origin: "local" }));
}

/** A tool factory and the tools that it made, kept for each context until that context is forgotten. */
class FactoryTools {
  readonly #factory: ToolFactory;
  readonly #label: string;
  readonly #warn: (message: string) => void;
  readonly #bySession = new Map<string, readonly Tool[]>();
  readonly #byContext = new WeakMap<ToolContext, readonly Tool[]>();

  constructor(factory: ToolFactory, label: string, warn: (message: string) => void) {
    this.#factory = factory;
    this.#label = label;
    this.#warn = warn;
  }

  for(context: ToolContext): readonly Tool[] {
    const { sessionId } = context;
    const kept = sessionId === undefined ? this.#byContext.get(context) : this.#bySession.get(sessionId);
    if (kept !== undefined) return kept;
    const tools = this.#make(context);
    if (sessionId === undefined) this.#byContext.set(context, tools);
    else this.#bySession.set(sessionId, tools);
    return tools;
  }

  forget(sessionId: string): void {
    this.#bySession.delete(sessionId);
  }

  #make(context: ToolContext): readonly Tool[] {
    let made: unknown;
    try {
      made = this.#factory(context);
    } catch (error) {
      this.#warn(`${this.#label} failed: ${error instanceof Error ? error.message : String(error)}`);
      return [];
    }
    if (made === null || made === undefined) return [];
    if (made instanceof Promise) {
      // Its rejection, if any, is part of the same mistake.
      made.catch(() => {});
      this.#warn(`${this.#label} is async; a factory must return its tools synchronously.`);
      return [];
    }
    const tools: Tool[] = [];
    for (const tool of Array.isArray(made) ? made : [made]) {
      try {
        checkLocalTool(tool);
        tools.push(tool);
      } catch (error) {
        this.#warn(`${this.#label}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return tools;
  }
}

/** The tools of a registry or of a session, as the source needs them. */
export interface LocalTools {
  localTools(): Tool[];
  getLocal(name: string, context: ToolContext): Tool | undefined;
  on(event: "change", listener: () => void): () => void;
}

/** The in-process tools as a Source. It lists the tools of the default context and runs those of the caller's own. */
export class LocalToolSource implements Source {
  readonly id: string;
  readonly kind = "local";
  readonly #tools: LocalTools;
  /** The tools behind `#definitions`: a change of mirrored tools only does not count. */
  #known: readonly Tool[] = [];
  #definitions: Definitions = NO_DEFINITIONS;

  constructor(tools: LocalTools, id: string = LOCAL_SOURCE) {
    this.id = id;
    this.#tools = tools;
  }

  definitions(): Definitions {
    const tools = this.#tools.localTools();
    const changed = tools.length !== this.#known.length || tools.some((tool, index) => tool !== this.#known[index]);
    if (changed) {
      this.#known = tools;
      this.#definitions = { ...NO_DEFINITIONS, tools: tools.map(definitionOf) };
    }
    return this.#definitions;
  }

  async run(use: Use, context: UseContext): Promise<JsonObject> {
    if (use.kind !== "tool") throw new ToolcribError("not_found", `In-process tools offer no ${use.kind}.`);
    const { id: sessionId, role, workspaceDir, owner } = context.session;
    const tool = this.#tools.getLocal(use.name, { sessionId, role, workspaceDir, owner });
    if (tool === undefined) {
      throw new ToolcribError("not_found", `There is no in-process tool "${use.name}" for this session.`);
    }
    if (tool.ownerOnly === true && !owner) {
      throw new ToolcribError("denied", `The tool "${tool.name}" is only for the user who runs the hub.`);
    }
    return runTool(tool, use.arguments, context);
  }

  onChange(listener: () => void): () => void {
    let seen = this.definitions();
    return this.#tools.on("change", () => {
      const now = this.definitions();
      if (now === seen) return;
      seen = now;
      listener();
    });
  }
}

function definitionOf({ name, label, description, parameters, annotations }: Tool): ToolDefinition {
  return {
    name,
    title: label,
    description,
    // MCP wants the type said, where JSON Schema would let it be left out.
    inputSchema: parameters["type"] === undefined ? { type: "object", ...parameters } : parameters,
    annotations,
  };
}
