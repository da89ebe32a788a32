import { describe, expect, it } from "vitest";
import { openGateway } from "../../gateway/gateway.ts";
import { tools } from "./place.ts";

const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

describe("[oper-09f] a client whose session was ended", () => {
  it("is told that there is none, so that it begins anew", async () => {
    await using gateway = await openGateway({}, { registry: tools() });
    const send = (message: object, session?: string): Promise<Response> =>
      fetch(`${gateway.url}/mcp`, {
        method: "POST",
        headers: { ...HEADERS, ...(session === undefined ? {} : { "mcp-session-id": session }) },
        body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      });
    const clientInfo = { name: "test", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const initialize = { id: 0, method: "initialize", params };
    const list = { id: 1, method: "tools/list" };
    const id = (await send(initialize)).headers.get("mcp-session-id") ?? "";
    expect((await send(list, id)).status).toBe(200);

    const { sessions } = await gateway.hub.internals.activity.sessions({ limit: 10, state: "open" });
    const [client] = sessions.filter((each) => each.id !== gateway.hub.session.id);
    expect(client).toMatchObject({ door: "mcp", owner: true });
    await gateway.hub.internals.activity.closeSession(client?.id ?? "");
    expect((await send(list, id)).status).toBe(404);
    expect((await send(initialize)).status).toBe(200);
  });
});
