/** What servers offer, as it becomes known and changes. */
import type { View } from "../../../hub/view.ts";
import type { ToolCapability } from "../../../model/capability.ts";
import type { Fields, Tell } from "./feed-event.ts";
import type { FeedHub } from "./feed-hub.ts";
import { serverThen } from "./seen-servers.ts";

type Tools = Fields<"mcp.tools.discovered">["tools"];

/** An event is no place for a whole catalog. */
const MOST_TOOLS = 500;
const LONGEST_DESCRIPTION = 300;
/** Ids with a colon belong to no server; what is under them is told of by events of its own. */
const isServer = (source: string): boolean => !source.includes(":");

export class ToolEvents {
  readonly #hub: FeedHub;
  readonly #tell: Tell;
  /** The tools of each source as they were last told. */
  #told: ReadonlyMap<string, readonly ToolCapability[]>;
  readonly #connected = new Set<string>();
  #soon: NodeJS.Immediate | undefined;

  constructor(hub: FeedHub, tell: Tell) {
    this.#hub = hub;
    this.#tell = tell;
    this.#told = bySource(hub.view(hub.session));
  }

  listen(): (() => void)[] {
    return [
      this.#hub.on("catalog", ({ kinds }) => {
        this.#tell("mcp.catalog.changed", { kinds: [...kinds] });
        if (kinds.includes("tool")) this.#lookSoon();
      }),
      this.#hub.on("visibility", () => {
        this.#tell("mcp.catalog.changed", { kinds: [] });
        this.#lookSoon();
      }),
      () => clearImmediate(this.#soon),
    ];
  }

  /** Its tools are told even if they are those from before it was away. */
  connected(id: string): void {
    this.#connected.add(id);
    this.#lookSoon();
  }

  /** Several servers that connect at once make one look at the catalog. */
  #lookSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined;
      this.#look();
    });
  }

  #look(): void {
    const before = this.#told;
    const now = bySource(this.#hub.view(this.#hub.session));
    this.#told = now;
    // That a server is gone is told by an event of its own, to those who saw it: the config no longer says who they are.
    const there = new Set(this.#hub.servers().map(({ id }) => id));
    const sources = new Set([...this.#connected, ...now.keys(), ...before.keys()]);
    for (const source of sources) {
      const tools = now.get(source) ?? [];
      if (!isServer(source) || !there.has(source)) continue;
      if (this.#connected.has(source) || !isSame(before.get(source) ?? [], tools)) this.#tellOf(source, tools);
    }
    this.#connected.clear();
  }

  #tellOf(serverId: string, tools: readonly ToolCapability[]): void {
    const isCut = tools.length > MOST_TOOLS;
    this.#tell(
      "mcp.tools.discovered",
      {
        serverId,
        tools: tools.slice(0, MOST_TOOLS).map((tool) => this.#summary(tool)),
        ...(isCut ? { truncated: true } : {}),
      },
      { server: serverThen(this.#hub.config, serverId) },
    );
  }

  #summary({ name, origin, definition, fingerprint }: ToolCapability): Tools[number] {
    const { title, description } = definition;
    return {
      name,
      server: origin.source,
      tool: origin.name,
      ...(title === undefined ? {} : { title: beginning(title) }),
      ...(description === undefined ? {} : { description: beginning(description) }),
      fingerprint,
      pin: this.#hub.pins?.stateOf(origin.source, origin.name) ?? "unknown",
    };
  }
}

function bySource({ tools }: View): Map<string, ToolCapability[]> {
  return Map.groupBy(tools, ({ origin }) => origin.source);
}

function isSame(a: readonly ToolCapability[], b: readonly ToolCapability[]): boolean {
  return a.length === b.length && a.every((tool, index) => tool === b[index] || isEqual(tool, b[index]));
}

function isEqual(a: ToolCapability, b: ToolCapability | undefined): boolean {
  return a.name === b?.name && a.fingerprint === b.fingerprint;
}

function beginning(text: string): string {
  return text.length <= LONGEST_DESCRIPTION ? text : `${text.slice(0, LONGEST_DESCRIPTION).toWellFormed()}…`;
}
