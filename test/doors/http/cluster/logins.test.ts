/** A login at a remote server that comes back to another node than the one where it began. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/base/clock.ts";
import { AuthorizationServer } from "../../../doubles/authorization-server.ts";
import { ProtectedServer } from "../../../doubles/protected-server.ts";
import { type Ground, missing, startGround } from "../../../hub/cluster/nodes.ts";
import { isMissing } from "../../../support/skips.ts";
import { ADA, EVE, openScene, type Scene, type SceneNode } from "./cluster-setup.ts";

isMissing("logins over nodes", missing);

describe.skipIf(missing !== undefined)("[sound-08b] logins over nodes", { timeout: 60_000 }, () => {
  let ground: Ground;
  let scene: Scene;
  let authorization: AuthorizationServer;
  let server: ProtectedServer;
  let a: SceneNode;
  let b: SceneNode;

  beforeAll(async () => {
    ground = await startGround();
    authorization = await AuthorizationServer.start(systemClock);
    server = await ProtectedServer.start(authorization);
    scene = await openScene(ground, { mine: { url: server.url, isolation: "user", auth: { type: "oauth" } } });
    [a, b] = await Promise.all([scene.start("a"), scene.start("b")]);
  });
  afterAll(async () => {
    await scene?.close();
    await Promise.all([authorization?.close(), server?.close()]);
    await ground?.stop();
  });

  const post = (node: SceneNode, token: string, path: string, body: object = {}): Promise<Response> =>
    fetch(`${node.url}/api/v1/mcp/logins/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  /** Where the browser comes back to. */
  const agreed = async (node: SceneNode, token: string): Promise<{ path: string; query: string }> => {
    const { url } = (await (await post(node, token, "mine")).json()) as { url: string };
    const { headers } = await fetch(url, { redirect: "manual" });
    const back = new URL(headers.get("location") ?? "");
    return { path: back.pathname, query: back.search };
  };

  it("end at the node where they began, once, for who began them", async () => {
    const back = await agreed(a, ADA);
    const done = await post(b, ADA, "finish", back);
    expect([done.status, await done.json()]).toMatchObject([200, { serverId: "mine", connected: true }]);
    for (const node of [a, b]) expect((await post(node, ADA, "finish", back)).status).toBe(404);
    const stolen = await agreed(a, EVE);
    expect((await post(b, ADA, "finish", stolen)).status).toBe(403);
    for (const node of [a, b]) expect((await post(node, EVE, "finish", stolen)).status).toBe(404);
  });

  it("are used up by the first of two nodes, also at the same time", async () => {
    const back = await agreed(b, ADA);
    const both = await Promise.all([post(a, ADA, "finish", back), post(b, ADA, "finish", back)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 404]);
  });
});
