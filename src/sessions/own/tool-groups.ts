/** In-process tools of one session, in groups that are replaced as a whole. */
import { Emitter } from "../../model/emitter.ts";
import type { Tool } from "../../model/tool.ts";
import type { LocalTools } from "../../tools/source.ts";
import { checkNotReserved, checkParameters, checkToolShape } from "../../tools/tool-shape.ts";

/** The group of Toolcrib's own agent: it alone has names that begin with `toolcrib_`, and they do not count. */
export const AGENT_GROUP = "agent";

export class ToolGroups implements LocalTools {
  readonly #events = new Emitter<{ change: undefined }>();
  readonly #groups = new Map<string, readonly Tool[]>();
  #byName: ReadonlyMap<string, Tool> = new Map();

  /** How many there are that count. */
  get count(): number {
    return [...this.#groups].reduce((sum, [group, tools]) => sum + (group === AGENT_GROUP ? 0 : tools.length), 0);
  }

  /**
   * Throws for what is no tool, and changes nothing then. Returns what was left out.
   * @param room How many tools all groups may have together.
   */
  set(group: string, tools: readonly Tool[], room: number): { readonly taken: string[]; readonly tooMany: string[] } {
    for (const tool of tools) {
      checkToolShape(tool);
      if (group !== AGENT_GROUP) checkNotReserved(tool);
      checkParameters(tool);
    }
    this.#groups.delete(group);
    const names = new Set([...this.#groups.values()].flat().map(({ name }) => name));
    const most = group === AGENT_GROUP ? Infinity : Math.max(0, room - this.count);
    const kept: Tool[] = [];
    const taken: string[] = [];
    const tooMany: string[] = [];
    for (const tool of tools) {
      if (names.has(tool.name)) taken.push(tool.name);
      else if (kept.length >= most) tooMany.push(tool.name);
      else kept.push(tool);
      names.add(tool.name);
    }
    if (kept.length > 0) this.#groups.set(group, kept);
    this.#byName = new Map([...this.#groups.values()].flat().map((tool) => [tool.name, tool]));
    this.#events.emit("change", undefined);
    return { taken, tooMany };
  }

  localTools(): Tool[] {
    return [...this.#byName.values()];
  }

  getLocal(name: string): Tool | undefined {
    return this.#byName.get(name);
  }

  on(event: "change", listener: () => void): () => void {
    return this.#events.on(event, listener);
  }

  close(): void {
    this.#groups.clear();
    this.#byName = new Map();
    this.#events.clear();
  }
}
