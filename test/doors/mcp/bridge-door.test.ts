import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { openHubLink } from "../../../src/cli/bridge/hub-link.ts";
import { BridgeDoor, type BridgeHello } from "../../../src/doors/mcp/bridge-door.ts";
import { McpDoor } from "../../../src/doors/mcp/mcp-door.ts";
import { readHubRecords } from "../../../src/hub/activity/hub-records.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { BRIDGE_PROTOCOL, HELLO_HEADER } from "../../../src/model/bridge.ts";
import { type Place, place } from "../http/support.ts";

const ADMIN = "admin-token-0123456789";
const hubs: Hub[] = [];
afterEach(() => Promise.all(hubs.splice(0).map((hub) => hub.close())));

async function scene(): Promise<Place & { token: string; bridge: BridgeDoor }> {
  const hub = await createHub({}, { store: false });
  hubs.push(hub);
  const door = new McpDoor({ hub });
  const bridge = new BridgeDoor({ door, needsAuth: () => true, hasServer: (id) => id === "files" });
  const auth = { tokens: [{ token: ADMIN, scopes: ["admin" as const] }] };
  const there = await place({ auth }, { routes: [bridge.route] });
  return { ...there, bridge, token: readHubRecords(there.home)[0]?.token ?? "" };
}

const hello: BridgeHello = { version: "0" };

describe("[counter-02d] the hub's end of a bridge", () => {
  it("takes the token of the hub's own file", async () => {
    const { url, token, bridge } = await scene();
    const link = await openHubLink({ url, token }, hello);
    link.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    link.resume();
    const [answer] = (await once(link, "data")) as [Buffer];
    expect(JSON.parse(answer.toString())).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
    expect(bridge.size).toBe(1);
    link.end();
    await once(link, "close");
    expect(bridge.size).toBe(0);
  });

  it("[counter-04d] a modern client is a session with its process, until it has left", async () => {
    const { url, token, bridge } = await scene();
    const hub = hubs.at(-1);
    const clients = () => hub?.internals.sessions().flatMap(({ clientInfo }) => clientInfo ?? []);
    const link = await openHubLink({ url, token }, { ...hello, pid: 7, program: "claude" });
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "modern", version: "9" },
    };
    link.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } })}\n`);
    link.resume();
    await once(link, "data");
    expect(clients()).toMatchObject([{ name: "modern", version: "9", transport: "stdio", pid: 7, program: "claude" }]);
    link.end();
    await once(link, "close");
    expect(bridge.size).toBe(0);
    expect(clients()).toEqual([]);
  });

  it.each([
    ["no token", undefined, "unauthorized"],
    ["another token, whatever its scopes", ADMIN, "denied"],
    ["a wrong one", "wrong-token-0123456789", "unauthorized"],
  ])("refuses %s", async (_name, token, code) => {
    const { url } = await scene();
    await expect(openHubLink({ url, token }, hello)).rejects.toMatchObject({ code });
  });

  it("refuses a server that there is not, and takes one that there is", async () => {
    const { url, token } = await scene();
    await expect(openHubLink({ url, token }, { ...hello, server: "gone" })).rejects.toMatchObject({
      code: "not_found",
    });
    (await openHubLink({ url, token }, { ...hello, server: "files" })).destroy();
  });

  it.each([
    "",
    "not base64 json",
    Buffer.from("[]").toString("base64url"),
    Buffer.from('{"version":7}').toString("base64url"),
  ])("refuses a hello of %j", async (header) => {
    const { listener, token } = await scene();
    const socket = connect(listener.port, "127.0.0.1");
    socket.write(
      `GET /bridge HTTP/1.1\r\nHost: 127.0.0.1:${listener.port}\r\nConnection: Upgrade\r\nUpgrade: ${BRIDGE_PROTOCOL}\r\n` +
        `Authorization: Bearer ${token}\r\n${HELLO_HEADER}: ${header}\r\n\r\n`,
    );
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("invalid_arguments");
  });

  it("is not for other requests and other protocols", async () => {
    const { ask, token } = await scene();
    expect((await ask("/bridge", { token })).status).toBe(426);
    const headers = { connection: "upgrade", upgrade: "websocket" };
    expect((await ask("/bridge", { token, headers })).status).toBe(426);
  });
});
