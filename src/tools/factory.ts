/** A tool factory and the tools it has made, kept for each context until that context is forgotten. */
import type { Tool } from "../model/tool.ts";
import { checkNotReserved, checkParameters, checkToolShape } from "./tool-shape.ts";

/** For whom tools are made. */
export interface ToolContext {
  /** Tools are kept by this id where there is one, by the context object itself otherwise. */
  readonly sessionId?: string;
  readonly role?: string;
  readonly workspaceDir?: string;
  /** True for the user who runs the hub. */
  readonly owner: boolean;
}

/** Makes the tools of one context; nothing if that context is to have none. Must not be async. */
export type ToolFactory = (context: ToolContext) => Tool | readonly Tool[] | null | undefined;

export class FactoryTools {
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
      this.#warn(`${this.#label} is async; a factory must return its tools at once.`);
      return [];
    }
    const tools: Tool[] = [];
    for (const tool of Array.isArray(made) ? made : [made]) {
      try {
        checkToolShape(tool);
        checkNotReserved(tool);
        checkParameters(tool);
        tools.push(tool);
      } catch (error) {
        this.#warn(`${this.#label}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return tools;
  }
}
