/** `live.setExtraTools` against a real hub. */
import { afterAll, beforeAll, describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { ToolcribApiError } from "../../src/api-client/api-error.ts";
import { ExtraToolHost } from "../../src/api-client/extra-tool-host.ts";
import { type ExtraTool, type LiveConnection, ToolcribClient } from "../../src/api-client/index.ts";
import type { OutputOf } from "../../src/contract/operations.ts";
import { type ApiScene, apiScene, TOKENS } from "../doors/http/api/api-setup.ts";

let scene: ApiScene;

beforeAll(async () => {
  scene = await apiScene({ servers: {} });
});

afterAll(() => scene.close());

interface Seat {
  readonly live: LiveConnection;
  readonly client: ToolcribClient;
  readonly sockets: WebSocket[];
  readonly statuses: string[];
}

function seat(): Seat {
  const sockets: WebSocket[] = [];
  const statuses: string[] = [];
  class Kept extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols);
      sockets.push(this);
    }
  }
  const client = new ToolcribClient({ url: scene.url, token: TOKENS.call, WebSocket: Kept });
  const live = client.live({ onStatus: (status) => statuses.push(status), after: soon });
  onTestFinished(() => live.close());
  return { live, client, sockets, statuses };
}

/** Only what brings a connection back is wanted, and that at once. */
function soon(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms > 5000 ? ms : 0);
  return () => clearTimeout(timer);
}

function tool(name: string, execute: ExtraTool["execute"]): ExtraTool {
  return { name, description: `${name} of a test.`, schema: { type: "object" }, execute };
}

function textOf({ content }: OutputOf<"callTool">): unknown {
  return content[0]?.["text"];
}

describe("[agent-02a] setExtraTools of the client", () => {
  it("answers calls with what its functions give, or throw", async () => {
    const { live, client } = seat();
    const made = await live.setExtraTools([
      tool("twice", ({ n }) => Number(n) * 2),
      tool("greet", async ({ name }) => `Hello ${String(name)}`),
      tool("fail", () => {
        throw new Error("It broke.");
      }),
      tool("endless", () => 1n),
      tool("whole", (_, { session }) => ({ content: [{ type: "text", text: session }], structuredContent: { x: 1 } })),
    ]);
    expectTypeOf(made).toExtend<{ session: string; tools: string[] }>();
    expect(made.tools).toEqual(["twice", "greet", "fail", "endless", "whole"]);
    const { session } = made;
    const call = (toolName: string, args = {}): Promise<OutputOf<"callTool">> =>
      client.callTool({ toolName, args, session });
    expect(textOf(await call("twice", { n: 21 }))).toBe("42");
    expect(textOf(await call("greet", { name: "Ada" }))).toBe("Hello Ada");
    expect(await call("fail")).toMatchObject({ isError: true, content: [{ text: "It broke." }] });
    expect(await call("endless")).toMatchObject({ isError: true });
    expect(await call("whole")).toEqual({ content: [{ type: "text", text: session }], structuredContent: { x: 1 } });
    await expect(live.setExtraTools([tool("not a name", () => "")])).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    // What was there stays.
    expect(textOf(await call("twice", { n: 1 }))).toBe("2");
    await live.setExtraTools([]);
    await expect(call("twice")).rejects.toMatchObject({ code: "not_found" });
  });

  it("for a session that was opened, by its id", async () => {
    const { live, client } = seat();
    const { sessionId } = await live.command("sessions.open", {});
    await live.setExtraTools([tool("there", () => "there")], { session: sessionId });
    await live.setExtraTools([tool("here", () => "here")]);
    const { tools } = await client.listTools({ session: sessionId });
    expect(tools.map(({ name }) => name)).toEqual(["there"]);
    expect(textOf(await client.callTool({ toolName: "there", session: sessionId }))).toBe("there");
  });
});

describe("[agent-02b] calls that the client answers", () => {
  it("report progress, and stop when nobody waits", async () => {
    const { live, client } = seat();
    const stopped = Promise.withResolvers<string>();
    const waits = tool("waits", (_, { signal, onProgress }) => {
      onProgress({ progress: 1, total: 2, message: "begun" });
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          stopped.resolve("stopped");
          resolve("too late");
        }),
      );
    });
    const { session } = await live.setExtraTools([waits]);
    const caller = client.live();
    onTestFinished(() => caller.close());
    const giveUp = new AbortController();
    const told: object[] = [];
    const onProgress = (progress: object): void => {
      told.push(progress);
      giveUp.abort();
    };
    const call = caller.command("mcp.callTool", { toolName: "waits", session }, { signal: giveUp.signal, onProgress });
    await expect(call).rejects.toMatchObject({ code: "cancelled" });
    expect(told).toEqual([{ progress: 1, total: 2, message: "begun" }]);
    expect(await stopped.promise).toBe("stopped");
  });

  it("are offered again after a refusal that passes, while the connection lasts", async () => {
    const tasks: (() => void)[] = [];
    let offers = 0;
    let code: "rate_limited" | "denied" | undefined;
    const host = new ExtraToolHost(
      // Only the offer of tools is asked for here.
      (async () => {
        offers += 1;
        if (code !== undefined) throw new ToolcribApiError({ code, message: "No." });
        return { session: "s", tools: [], notices: [] };
      }) as unknown as ConstructorParameters<typeof ExtraToolHost>[0],
      (_ms, task) => {
        tasks.push(task);
        return () => tasks.splice(tasks.indexOf(task), 1);
      },
    );
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    await host.set([tool("count", () => "one")]);
    code = "rate_limited";
    host.renew();
    await turn();
    tasks.shift()?.();
    await turn();
    expect([offers, tasks.length]).toEqual([3, 1]);
    host.abortAll();
    expect(tasks).toEqual([]);
    host.renew();
    await turn();
    code = undefined;
    tasks.shift()?.();
    await turn();
    expect([offers, tasks.length]).toEqual([5, 0]);
    code = "denied";
    host.renew();
    await turn();
    expect([offers, tasks.length]).toEqual([6, 0]);
  });

  it("are there again after a reconnect, with a session of its own that is new", async () => {
    const { live, client, sockets, statuses } = seat();
    const [begun, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const tools = [
      tool("count", () => "one"),
      tool("waits", (_, { signal }) => {
        signal.addEventListener("abort", () => aborted.resolve());
        begun.resolve();
        return new Promise(() => {});
      }),
    ];
    const { session } = await live.setExtraTools(tools);
    const waiting = client.callTool({ toolName: "waits", session }).catch((error: unknown) => error);
    await expect.poll(() => scene.hub.internals.sessions().find(({ id }) => id === session)?.running.size).toBe(1);
    // The hub writes the call down before it sends it.
    await begun.promise;
    sockets[0]?.terminate();
    await aborted.promise;
    expect(await waiting).toHaveProperty("code", expect.stringMatching(/cancelled|server_unavailable/));
    await expect.poll(() => statuses).toEqual(["open", "lost", "open"]);
    const named = async (): Promise<string[]> => (await live.command("listTools", {})).tools.map(({ name }) => name);
    await expect.poll(named).toEqual(["count", "waits"]);
    expect(await live.command("mcp.callTool", { toolName: "count" })).toMatchObject({ content: [{ text: "one" }] });
    await expect(client.callTool({ toolName: "count", session })).rejects.toMatchObject({ code: "not_found" });
  });
});
