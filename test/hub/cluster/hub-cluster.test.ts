import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { MemorySettings } from "./memory-settings.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";

const CLUSTER = "nats://node:battery-staple-9@127.0.0.1:9";

describe("[scale-05b] the cluster of a hub", () => {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-cluster-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it("needs a store that nodes share", async () => {
    await expect(createHub({ cluster: CLUSTER, mcpServers: {} }, { home, cluster: true })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("PostgreSQL"),
      hint: expect.stringContaining("postgres://"),
    });
  });

  it("is not joined by a hub that is no node, which says so", async () => {
    await using hub = await createHub({ cluster: CLUSTER, mcpServers: {} }, { home });
    expect(hub.internals.cluster).toBeUndefined();
    expect(hub.warnings().map(({ message }) => message)).toEqual([expect.stringContaining("does not join")]);
  });

  it("that cannot be reached is an error without its password", async () => {
    const redactor = new Redactor();
    // Only the keys of the cluster are looked up before.
    const store = { kind: "postgres", ...new MemorySettings().store } as never;
    const opening = createHub({ cluster: CLUSTER, mcpServers: {} }, { home, cluster: true, store, redactor });
    const error: unknown = await opening.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "server_unavailable", hint: expect.stringContaining("supervisor") });
    expect(JSON.stringify(error)).not.toContain("battery-staple-9");
    expect(redactor.mask("with battery-staple-9")).not.toContain("battery-staple-9");
  });
});
