/** ToolRegistry: the in-process tools of a hub, by name, in the order in which they were registered. */
import { Emitter } from "../base/emitter.ts";
import { LOCAL_SOURCE } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import { type Definitions, NO_DEFINITIONS, type Source, type Use, type UseContext } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import { withFlatRoot } from "../schemas/normalize.ts";
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
  /** Names that are new or gone, in the default context; a name that another tool takes over is in both lists. */
  change: { readonly added: readonly string[]; readonly removed: readonly string[] };
  /** As `change`, unless only tools mirrored in from MCP servers are concerned. */
  local: undefined;
  /** A factory came or went that has no tools in the default context: other contexts may have other tools now. */
  contexts: undefined;
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

/** `place` counts up with every registration: of two tools with one name, which only factories can cause, the first is used. */
type Entry = { readonly place: number } & (
  | (Listed & { readonly kind: "tool" })
  | { readonly kind: "factory"; readonly tools: FactoryTools }
);
type FactoryEntry = Extract<Entry, { kind: "factory" }>;

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
  readonly #factories = new Set<FactoryEntry>();
  /** In the default context, whose tools are made once: the entries that have a tool of each name, in their order. */
  readonly #claims = new Map<string, readonly Entry[]>();
  #places = 0;
  #version = 0;
  #present: (tool: Tool) => Tool = (tool) => tool;

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
    return this.#add({ kind: "tool", place: this.#places++, tool, origin });
  }

  /** Registers a factory that makes tools for each context, so that they can know their session. */
  registerFactory(factory: ToolFactory, options: RegisterFactoryOptions = {}): () => void {
    if (typeof factory !== "function")
      throw new ToolcribError("invalid_arguments", "A tool factory must be a function.");
    const label = options.label ?? "A tool factory";
    const warn = (message: string): void => this.#events.emit("warning", { message });
    const tools = new FactoryTools(factory, label, warn);
    for (const name of tools.for(DEFAULT_CONTEXT).keys()) {
      if (this.get(name) !== undefined) warn(`${label}: the name "${name}" is taken; its tool is left out.`);
    }
    return this.#add({ kind: "factory", place: this.#places++, tools });
  }

  /** False if no tool of that name was registered by itself; tools of a factory go with their factory. */
  unregister(name: string): boolean {
    const entry = this.#claims.get(name)?.find(({ kind }) => kind === "tool");
    return entry !== undefined && this.#remove(entry);
  }

  get(name: string, context: ToolContext = DEFAULT_CONTEXT): Tool | undefined {
    const found = this.#find(name, context);
    return found && this.#shown(found);
  }

  /** From now on `get` and `list` show the program's own tools in another form, such as that of a model provider. The returned function takes it back. */
  presentLocal(present: (tool: Tool) => Tool): () => void {
    this.#present = present;
    return () => {
      if (this.#present === present) this.#present = (tool) => tool;
    };
  }

  /** Like `get`, but not for tools mirrored in from MCP servers. */
  getLocal(name: string, context: ToolContext): Tool | undefined {
    const found = this.#find(name, context);
    return found?.origin === "local" ? found.tool : undefined;
  }

  list(context: ToolContext = DEFAULT_CONTEXT): Tool[] {
    return this.#resolved(context).map((listed) => this.#shown(listed));
  }

  /** The tools that `source()` offers: all but those mirrored in from MCP servers. */
  localTools(context: ToolContext = DEFAULT_CONTEXT): Tool[] {
    return this.#resolved(context).flatMap(({ tool, origin }) => (origin === "local" ? [tool] : []));
  }

  get size(): number {
    return this.#claims.size;
  }

  /** Whether sessions can have other tools than the default context. */
  get hasFactories(): boolean {
    return this.#factories.size > 0;
  }

  /** Counts up with everything that is registered or unregistered. */
  get version(): number {
    return this.#version;
  }

  /** The local tools of a context, without those that it may not use. */
  definitionsFor(context: ToolContext): ToolDefinition[] {
    return this.localTools(context)
      .filter(({ ownerOnly }) => ownerOnly !== true || context.owner)
      .map(definitionOf);
  }

  isOwnerOnly(name: string): boolean {
    return this.get(name)?.ownerOnly === true;
  }

  /** Drops what factories made for a session that has ended. */
  forgetContext(sessionId: string): void {
    for (const { tools } of this.#factories) tools.forget(sessionId);
  }

  /** The registry as the catalog sees it. */
  source(): Source {
    return new LocalToolSource(this);
  }

  #add(entry: Entry): () => void {
    this.#version += 1;
    this.#entries.add(entry);
    if (entry.kind === "factory") this.#factories.add(entry);
    const added: string[] = [];
    for (const name of namesOf(entry)) {
      const others = this.#claims.get(name) ?? [];
      this.#claims.set(name, [...others, entry]);
      if (others.length === 0) added.push(name);
    }
    this.#announce(entry, added, []);
    return () => void this.#remove(entry);
  }

  #remove(entry: Entry): boolean {
    if (!this.#entries.delete(entry)) return false;
    this.#version += 1;
    if (entry.kind === "factory") this.#factories.delete(entry);
    const added: string[] = [];
    const removed: string[] = [];
    for (const name of namesOf(entry)) {
      const claims = this.#claims.get(name) ?? [];
      const others = claims.filter((each) => each !== entry);
      if (others.length === 0) this.#claims.delete(name);
      else this.#claims.set(name, others);
      if (claims[0] !== entry) continue;
      removed.push(name);
      if (others.length > 0) added.push(name);
    }
    this.#announce(entry, added, removed);
    return true;
  }

  #announce(entry: Entry, added: readonly string[], removed: readonly string[]): void {
    if (added.length + removed.length === 0) {
      if (entry.kind === "factory") this.#events.emit("contexts", undefined);
      return;
    }
    this.#events.emit("change", { added, removed });
    const isMirrored = entry.kind === "tool" && entry.origin === "mcp";
    // A mirrored tool that goes may make room for one of a factory.
    if (!isMirrored || (added.length > 0 && removed.length > 0)) this.#events.emit("local", undefined);
  }

  #find(name: string, context: ToolContext): Listed | undefined {
    const [first] = this.#claims.get(name) ?? [];
    if (context === DEFAULT_CONTEXT) return first && listedOf(first, name, context);
    const own = this.#claims.get(name)?.find(({ kind }) => kind === "tool");
    for (const factory of this.#factories) {
      if (own !== undefined && own.place < factory.place) break;
      const made = listedOf(factory, name, context);
      if (made !== undefined) return made;
    }
    return own && listedOf(own, name, context);
  }

  #shown({ tool, origin }: Listed): Tool {
    return origin === "local" ? this.#present(tool) : tool;
  }

  #resolved(context: ToolContext): Listed[] {
    const byName = new Map<string, Listed>();
    for (const entry of this.#entries) {
      if (entry.kind === "tool") {
        if (!byName.has(entry.tool.name)) byName.set(entry.tool.name, entry);
        continue;
      }
      for (const [name, tool] of entry.tools.for(context))
        if (!byName.has(name)) byName.set(name, { tool, origin: "local" });
    }
    return [...byName.values()];
  }
}

function checkLocalTool(tool: unknown): asserts tool is Tool {
  checkToolShape(tool);
  checkNotReserved(tool);
  checkParameters(tool);
}

/** In the default context. */
function namesOf(entry: Entry): Iterable<string> {
  return entry.kind === "tool" ? [entry.tool.name] : entry.tools.for(DEFAULT_CONTEXT).keys();
}

function listedOf(entry: Entry, name: string, context: ToolContext): Listed | undefined {
  if (entry.kind === "tool") return entry;
  const tool = entry.tools.for(context).get(name);
  return tool && { tool, origin: "local" };
}

type ToolsByName = ReadonlyMap<string, Tool>;

/** Messages of one factory that are remembered, so that none comes again with each session. */
const MAX_TOLD = 100;

/** A tool factory and the tools that it made, kept for each context until that context is forgotten. */
class FactoryTools {
  readonly #factory: ToolFactory;
  readonly #label: string;
  readonly #warn: (message: string, context: ToolContext) => void;
  readonly #bySession = new Map<string, ToolsByName>();
  readonly #byContext = new WeakMap<ToolContext, ToolsByName>();

  constructor(factory: ToolFactory, label: string, warn: (message: string) => void) {
    this.#factory = factory;
    this.#label = label;
    const told = new Set<string>();
    this.#warn = (message, { sessionId }) => {
      // What is wrong with a factory is mostly wrong in every session.
      if (sessionId !== undefined && told.has(message)) return;
      if (sessionId !== undefined && told.size < MAX_TOLD) told.add(message);
      warn(message);
    };
  }

  for(context: ToolContext): ToolsByName {
    const { sessionId } = context;
    const kept = sessionId === undefined ? this.#byContext.get(context) : this.#bySession.get(sessionId);
    if (kept !== undefined) return kept;
    const tools = new Map<string, Tool>();
    for (const tool of this.#make(context)) if (!tools.has(tool.name)) tools.set(tool.name, tool);
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
      this.#warn(`${this.#label} failed: ${error instanceof Error ? error.message : String(error)}`, context);
      return [];
    }
    if (made === null || made === undefined) return [];
    if (made instanceof Promise) {
      // Its rejection, if any, is part of the same mistake.
      made.catch(() => {});
      this.#warn(`${this.#label} is async; a factory must return its tools synchronously.`, context);
      return [];
    }
    const tools: Tool[] = [];
    for (const tool of Array.isArray(made) ? made : [made]) {
      try {
        checkLocalTool(tool);
        tools.push(tool);
      } catch (error) {
        this.#warn(`${this.#label}: ${error instanceof Error ? error.message : String(error)}`, context);
      }
    }
    return tools;
  }
}

/** The tools of a registry or of a session, as the source needs them. */
export interface LocalTools {
  localTools(): Tool[];
  getLocal(name: string, context: ToolContext): Tool | undefined;
  /** Called after `localTools()` changed. */
  on(event: "local", listener: () => void): () => void;
}

/** The in-process tools as a Source. It lists the tools of the default context and runs those of the caller's own. */
export class LocalToolSource implements Source {
  readonly id: string;
  readonly kind = "local";
  readonly #tools: LocalTools;
  #definitions: Definitions = NO_DEFINITIONS;

  constructor(tools: LocalTools, id: string = LOCAL_SOURCE) {
    this.id = id;
    this.#tools = tools;
  }

  definitions(): Definitions {
    const before = this.#definitions.tools;
    const tools = this.#tools.localTools().map(definitionOf);
    const isSame = tools.length === before.length && tools.every((definition, index) => definition === before[index]);
    if (!isSame) this.#definitions = { ...NO_DEFINITIONS, tools };
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
    return this.#tools.on("local", listener);
  }
}

/** A tool keeps its definition, so that what is known of the definition need not be found out again for each version. */
const definitionsByTool = new WeakMap<Tool, { readonly of: Tool; readonly definition: ToolDefinition }>();

function definitionOf(tool: Tool): ToolDefinition {
  const { name, label, description, parameters, annotations } = tool;
  const known = definitionsByTool.get(tool);
  // Tools are not frozen: one that was changed and registered again has another definition.
  if (known !== undefined && DEFINING.every((key) => known.of[key] === tool[key])) return known.definition;
  const definition = {
    name,
    title: label,
    description,
    // MCP wants the type said, where JSON Schema would let it be left out.
    inputSchema: withFlatRoot(parameters["type"] === undefined ? { type: "object", ...parameters } : parameters),
    annotations,
  };
  definitionsByTool.set(tool, { of: { ...tool }, definition });
  return definition;
}

const DEFINING = ["name", "label", "description", "parameters", "annotations"] as const satisfies (keyof Tool)[];
