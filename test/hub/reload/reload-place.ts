/** A folder with a config file, and servers whose answers show which process gave them. */
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import type { CatalogChange } from "../../../src/catalog/snapshot.ts";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { HubEvents } from "../../../src/hub/hub-events.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import type { Session } from "../../../src/sessions/session.ts";

/**
 * Offers the tools of its first argument, all of which answer `label pid`; `wait` answers when a file `<label>.go` appears,
 * and writes `<label>.waiting` before. With `gate` it says nothing at all before that file appears. When a file `say`
 * appears, it sends a notification that holds its token. `new` tells of an update as soon as its resource is subscribed to.
 */
const SERVER = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
const { label, tools = ["who"], instructions, gate, levels, resource, description, down } = JSON.parse(process.argv[2]);
const file = (name) => join(process.argv[3], name);
if (down && existsSync(file(down))) process.exit(1);
const appears = async (name) => { while (!existsSync(file(name))) await new Promise((next) => setTimeout(next, 5)); };
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const calls = {
  initialize: ({ protocolVersion, capabilities }) => {
    writeFileSync(file(label + ".capabilities"), JSON.stringify(capabilities));
    const more = { ...(levels && { logging: {} }), ...(resource && { resources: { subscribe: true } }) };
    return { protocolVersion, capabilities: { tools: {}, ...more }, serverInfo: { name: "s", version: "1" }, instructions };
  },
  "tools/list": () => ({ tools: tools.map((name) => ({ name, description, inputSchema: { type: "object" } })) }),
  "tools/call": async ({ name }) => {
    if (name === "wait") {
      writeFileSync(file(label + ".waiting"), "");
      await appears(label + ".go");
    }
    return { content: [{ type: "text", text: label + " " + process.pid }] };
  },
  "resources/list": () => ({ resources: [{ uri: resource, name: "r" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/subscribe": ({ uri }) => {
    appendFileSync(file(label + ".subscribed"), uri + "\\n");
    if (label === "new") setTimeout(() => send({ method: "notifications/resources/updated", params: { uri } }), 10);
    return {};
  },
  "logging/setLevel": ({ level }) => {
    writeFileSync(file(label + ".level"), level);
    return {};
  },
};
createInterface({ input: process.stdin }).on("line", async (line) => {
  if (gate) await appears(gate);
  const { id, method, params = {} } = JSON.parse(line);
  if (method === "notifications/roots/list_changed") writeFileSync(file(label + ".roots"), "");
  if (id !== undefined) send({ id, result: (await calls[method]?.(params)) ?? {} });
}).on("close", () => process.exit());
appears("say").then(() => {
  const params = { uri: resource, token: process.env.TOKEN };
  if (resource) send({ method: "notifications/resources/updated", params });
  send({ method: "notifications/custom/said", params });
});
`;

export interface ServerOptions {
  /** Shown in its answers; the id by default. */
  readonly label?: string;
  readonly tools?: readonly string[];
  /** Of each tool. */
  readonly description?: string;
  readonly instructions?: string;
  /** The file that it waits for before it says anything. */
  readonly gate?: string;
  /** While there is a file of this name it does not start. */
  readonly down?: string;
  /** Takes log levels. */
  readonly levels?: boolean;
  /** The URI of a resource that it offers. */
  readonly resource?: string;
}

export interface Seen {
  readonly catalog: CatalogChange[];
  /** `id state` of each. */
  readonly servers: string[];
  readonly warnings: string[];
  readonly reloads: HubEvents["reload"]["report"][];
  visibility: number;
}

export class ReloadPlace {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-reload-"));
  readonly file = join(this.dir, "toolcrib.json");
  readonly #hubs: Hub[] = [];

  constructor() {
    writeFileSync(join(this.dir, "server.mjs"), SERVER);
    onTestFinished(async () => {
      for (const hub of this.#hubs) await hub.close();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  /** The entry of a server. */
  server(label: string, options: ServerOptions = {}, more: Partial<ServerEntryInput> = {}): ServerEntryInput {
    const args = [join(this.dir, "server.mjs"), JSON.stringify({ label, ...options }), this.dir];
    return { command: process.execPath, args, ...more };
  }

  /** In place, as `>` does. */
  write(config: ConfigInput | string, file = this.file): void {
    writeFileSync(file, textOf(config));
  }

  /** By renaming, as most editors do. */
  replace(config: ConfigInput | string, file = this.file): void {
    writeFileSync(`${file}.new`, textOf(config));
    renameSync(`${file}.new`, file);
  }

  async start(config: ConfigInput, options: HubOptions = {}): Promise<Hub> {
    this.write(config);
    return this.open(this.file, options);
  }

  async open(source: string | ConfigInput, options: HubOptions = {}): Promise<Hub> {
    const hub = await createHub(source, { home: join(this.dir, "home"), ...options });
    this.#hubs.push(hub);
    return hub;
  }

  touch(name: string): void {
    writeFileSync(join(this.dir, name), "");
  }

  read(name: string): string {
    return readFileSync(join(this.dir, name), "utf8");
  }

  async appears(name: string): Promise<void> {
    await vi.waitFor(() => {
      if (!existsSync(join(this.dir, name))) throw new Error(`there is no ${name}`);
    }, WAIT);
  }
}

/** Long enough for a slow machine; nothing waits longer than it must. */
export const WAIT = { timeout: 60_000, interval: 20 };

export function watchEvents(hub: Hub): Seen {
  const seen: Seen = { catalog: [], servers: [], warnings: [], reloads: [], visibility: 0 };
  hub.on("catalog", (change) => seen.catalog.push(change));
  hub.on("server", ({ info }) => seen.servers.push(`${info.id} ${info.state}`));
  hub.on("warning", ({ message }) => seen.warnings.push(message));
  hub.on("reload", ({ report }) => seen.reloads.push(report));
  hub.on("visibility", () => (seen.visibility += 1));
  return seen;
}

/** The text that a tool answers with, or the code of the error. */
export async function ask(hub: Hub, name: string, session: Session = hub.session): Promise<string> {
  const outcome = await hub.call({ session, name });
  if (!outcome.ok) return outcome.error.code;
  const [block] = outcome.result.content;
  return block?.type === "text" && typeof block.text === "string" ? block.text : "no text";
}

export function toolNames(hub: Hub, session: Session = hub.session): string[] {
  return hub.view(session).tools.map(({ name }) => name);
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function pidIn(answer: string): number {
  return Number(answer.split(" ")[1]);
}

function textOf(config: ConfigInput | string): string {
  return typeof config === "string" ? config : JSON.stringify(config, null, 2);
}
