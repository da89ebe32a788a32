/** Nodes of one cluster with all their HTTP doors, in this process, on a real NATS and a real PostgreSQL. */
import { runCommandLine } from "../../../../src/cli/program.ts";
import { join } from "node:path";
import { type HttpDoors, openHttpDoors } from "../../../../src/cli/serve/http-doors.ts";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../../src/hub/hub.ts";
import { HttpSchema } from "../../../../src/model/config.ts";
import type { ServerEntryInput } from "../../../../src/model/server-spec.ts";
import type { Tool } from "../../../../src/model/tool.ts";
import { Redactor } from "../../../../src/secrets/redactor.ts";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { type Ground, LEASE_MS } from "../../../hub/cluster/nodes.ts";
import { everything } from "../../../support/servers.ts";
import { tool } from "../../../tools/support.ts";

export const ADA = "ada-token-0123456789";
export const EVE = "eve-token-0123456789";
export const OPS = "ops-token-0123456789";

export interface SceneNode {
  readonly name: string;
  readonly hub: Hub;
  readonly doors: HttpDoors;
  readonly url: string;
  readonly registry: ToolRegistry;
  readonly warnings: string[];
  /** Calls of `waits` that began, that were given up, and how to let all go on. */
  readonly waited: { begun: number; ended: number; readonly all: (() => void)[] };
  close(): Promise<void>;
}

export interface Scene {
  start(name: string): Promise<SceneNode>;
  close(): Promise<void>;
}

let scenes = 0;

export async function openScene(
  ground: Ground,
  servers: Readonly<Record<string, ServerEntryInput>> = {},
): Promise<Scene> {
  const cluster = `doors${++scenes}`;
  const store = await ground.postgres.freshUrl();
  const open = new Set<SceneNode>();
  return {
    async start(name) {
      const registry = new ToolRegistry();
      const waited: SceneNode["waited"] = { begun: 0, ended: 0, all: [] };
      for (const each of toolsOf(name, waited)) registry.register(each);
      const config = {
        store,
        cluster: { url: ground.nats.url, name: cluster, node: name, leaseMs: LEASE_MS },
        mcpServers: { e: everything(), ...servers },
        limits: { callsPerMinute: 100_000, resultBytes: 100_000 },
        http: {
          port: 0,
          limits: { shutdownMs: 5000 },
          auth: {
            tokens: [
              { token: ADA, user: "ada" },
              { token: EVE, user: "eve" },
              { token: OPS, scopes: ["admin" as const] },
            ],
          },
        },
      };
      const home = join(ground.dir, cluster, name);
      const redactor = new Redactor();
      const warnings: string[] = [];
      const hub = await createHub(config, { home, cluster: true, registry, redactor, wait: false });
      hub.on("warning", ({ message }) => warnings.push(message));
      const doors = await openHttpDoors({
        runCommandLine,
        hub,
        http: () => HttpSchema.parse(hub.config.config.http),
        redactor,
        env: {},
        home,
        indexText: "a node",
        warn: (message) => warnings.push(message),
      });
      const node: SceneNode = {
        name,
        hub,
        doors,
        url: doors.listener.url,
        registry,
        warnings,
        waited,
        async close() {
          open.delete(node);
          await doors.close();
          await hub.close();
        },
      };
      open.add(node);
      return node;
    },
    async close() {
      await Promise.all([...open].map((node) => node.close()));
    },
  };
}

function toolsOf(node: string, waited: SceneNode["waited"]): Tool[] {
  const says = (text: string): ReturnType<Tool["execute"]> => Promise.resolve({ content: [{ type: "text", text }] });
  return [
    tool("whereami", { execute: () => says(node) }),
    tool("big", { execute: () => says(`${node} ${"b".repeat(200_000)}`) }),
    tool("steps", {
      execute: async (_id, _params, _signal, onUpdate) => {
        for (const step of ["one", "two"]) onUpdate?.({ content: [{ type: "text", text: step }] });
        await new Promise((resolve) => setTimeout(resolve, 200));
        return says(node);
      },
    }),
    tool("waits", {
      execute: (_id, _params, signal) =>
        new Promise((resolve, reject) => {
          waited.begun += 1;
          waited.all.push(() => void says(`waited at ${node}`).then(resolve));
          signal?.addEventListener("abort", () => {
            waited.ended += 1;
            reject(new Error("given up"));
          });
        }),
    }),
  ];
}

/** Sends each request to the next address in turn, as a balancer does; `first` only what begins. */
export function inTurn(urls: readonly string[], token = ADA): typeof fetch & { readonly asked: string[] } {
  const asked: string[] = [];
  let count = 0;
  const balanced = (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const base = new URL(urls[count++ % urls.length] ?? "");
    url.host = base.host;
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    asked.push(`${init.method ?? "GET"} ${base.host}`);
    return fetch(url, { ...init, headers });
  };
  return Object.assign(balanced, { asked });
}

/** The first request goes to one node, all others to another. */
export function thenOnly(first: string, others: string, token = ADA): typeof fetch {
  const [begin, rest] = [inTurn([first], token), inTurn([others], token)];
  let hasBegun = false;
  return (input, init) => {
    if (hasBegun) return rest(input, init);
    hasBegun = true;
    return begin(input, init);
  };
}
