import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { LOCAL_SOURCE } from "../model/local-source.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import type { SessionContext } from "../model/session.ts";
import { NO_DEFINITIONS, type Definitions, type Source, type Use, type UseContext } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import type { ToolContext } from "./factory.ts";
import { runTool } from "./run.ts";

/** What the source needs of the registry, which imports this file. */
export interface LocalTools {
  localTools(): Tool[];
  getLocal(name: string, context: ToolContext): Tool | undefined;
  on(event: "change", listener: () => void): () => void;
}

/** The in-process tools as a Source. It lists the tools of the default context and runs those of the caller's own. */
export class LocalSource implements Source {
  readonly id: string;
  readonly kind = "local";
  readonly #tools: LocalTools;
  /** What `#definitions` was made of: a change of mirrored tools only is no change here. */
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
    const tool = this.#tools.getLocal(use.name, toolContext(context.session));
    if (tool === undefined) {
      throw new ToolcribError("not_found", `There is no in-process tool "${use.name}" for this session.`);
    }
    if (tool.ownerOnly === true && !context.session.owner) {
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

function toolContext({ id, role, workspaceDir, owner }: SessionContext): ToolContext {
  return {
    sessionId: id,
    owner,
    role,
    workspaceDir,
  };
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
