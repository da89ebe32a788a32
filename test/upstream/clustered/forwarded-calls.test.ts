import { decodeError, encodeError } from "../../../src/cluster/cluster.ts";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { ServerSpec } from "../../../src/model/server-spec.ts";
import type { SessionContext } from "../../../src/model/source.ts";
import {
  answerForwarded,
  asCallNotStarted,
  CallNotStarted,
  clientKey,
  forwardedClient,
  forwardedSession,
  remoteClient,
} from "../../../src/upstream/clustered/forwarded-calls.ts";
import { localSessionId, RemoteSessions } from "../../../src/upstream/clustered/cluster-sessions.ts";
import { specDigest } from "../../../src/upstream/clustered/replica.ts";
import { rpcRefusal, rpcOf } from "../../../src/upstream/rpc-error.ts";

const session = (id: string, more: Partial<SessionContext> = {}): SessionContext => ({
  id,
  door: "mcp",
  owner: false,
  client: { key: id, capabilities: {} },
  ...more,
});

describe("[scale-06b] what travels to the node that runs a server", () => {
  it("an error arrives as it was, the server's own answer included", () => {
    const error = rpcRefusal(-32602, "no such city", "try another");
    const arrived = decodeError(JSON.parse(JSON.stringify(encodeError(error))));
    expect(arrived.toObject()).toEqual(error.toObject());
    expect(rpcOf(arrived)).toEqual({ code: -32602, message: "no such city" });
  });

  it("a call is given to another place only if nothing was begun", () => {
    const unsent = new ToolcribError("server_unavailable", "nobody is there", { details: { sent: false } });
    expect(asCallNotStarted(unsent)).toBeInstanceOf(CallNotStarted);
    for (const error of [
      new ToolcribError("server_unavailable", "the node has gone"),
      new ToolcribError("too_large", "too large", { details: { sent: false } }),
      new Error("odd"),
    ]) {
      expect(asCallNotStarted(error)).toBe(error);
    }
  });

  it("clients with one key have one key there, and those of other nodes never", () => {
    const key = {};
    expect(clientKey(key)).toBe(clientKey(key));
    expect(clientKey({})).not.toBe(clientKey(key));
    expect(clientKey("1")).not.toBe(clientKey({}));
    const sent = forwardedClient({ key, capabilities: {} });
    const ask = async (): Promise<JsonObject> => ({});
    expect(remoteClient(sent, { ask, from: "a" }).key).not.toBe(remoteClient(sent, { ask, from: "b" }).key);
  });

  it("a client is asked at its own node, and its refusal comes back", async () => {
    const client = {
      key: "k",
      capabilities: { sampling: {} },
      sample: async (params: JsonObject) => ({ model: "m", asked: params["prompt"] }),
    };
    const far = remoteClient(forwardedClient(client), {
      from: "a",
      ask: async (question, signal) => answerForwarded("city", client, question, signal),
    });
    const context = { server: "city", signal: new AbortController().signal };
    expect(await far.sample?.({ prompt: "hi" }, context)).toEqual({ model: "m", asked: "hi" });
    expect(far.elicit).toBeUndefined();
    const answer = await answerForwarded("city", client, { method: "elicitation/create", params: {} }, context.signal);
    expect(answer["error"]).toMatchObject({ details: { rpc: { code: -32601 } } });
  });

  it("a client with an open question is not asked another one first", async () => {
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    const sent = forwardedClient({ key: "k", capabilities: {}, elicit: async () => ({}) });
    const far = remoteClient(sent, { from: "a", ask: () => promise });
    const asked = far.elicit?.({}, { server: "city", signal: new AbortController().signal });
    expect(far.isWaiting?.()).toBe(true);
    resolve({ result: { action: "accept" } });
    expect(await asked).toEqual({ action: "accept" });
    expect(far.isWaiting?.()).toBe(false);
  });

  it("sessions of different nodes are never taken for one another", () => {
    const hub = session("hub");
    const remote = new RemoteSessions(undefined);
    const ids = ["a", "b"].map((node) => remote.take(forwardedSession(session("1", { user: "ada" }), hub), node).id);
    expect(new Set(ids).size).toBe(2);
    expect(localSessionId(ids[0] ?? "", "a")).toBe("1");
    expect(localSessionId(ids[0] ?? "", "b")).toBe(ids[0]);
    expect(remote.dropAll("a")).toEqual([ids[0]]);
    expect(remote.dropAll("a")).toEqual([]);
    expect(remote.drop("1", "b")).toBe(ids[1]);
    expect(remote.dropAll("b")).toEqual([]);
  });

  it("the own sessions of all hubs share the connection of the user who runs them, if there is one", () => {
    const hub = session("hub", { owner: true });
    const sent = forwardedSession(hub, hub);
    expect(new RemoteSessions("here").see(sent, "a")).toMatchObject({ id: "here", owner: true });
    expect(new RemoteSessions(undefined).see(sent, "a").id).toBe("a/hub");
    expect(new RemoteSessions("here").see(forwardedSession(session("1"), hub), "a").id).toBe("a/1");
  });
});

describe("[scale-06a] the digest of a spec", () => {
  const spec = (more: Partial<ServerSpec>): ServerSpec =>
    ({ id: "x", command: "node", args: ["a.js"], baseDir: "/etc", enabled: true, ...more }) as ServerSpec;

  it("is the same for nodes whose files are elsewhere, or that call it otherwise", () => {
    expect(specDigest(spec({ baseDir: "/opt", name: "Y", toolTimeout: 1 }))).toBe(specDigest(spec({})));
  });

  it("is another one for another program, and holds no text of it", () => {
    const env = { KEY: "correct-horse" };
    expect(specDigest(spec({ args: ["b.js"] }))).not.toBe(specDigest(spec({})));
    expect(specDigest(spec({ env }))).not.toBe(specDigest(spec({})));
    expect(specDigest(spec({ env }))).toMatch(/^[0-9a-f]{32}$/);
  });
});
