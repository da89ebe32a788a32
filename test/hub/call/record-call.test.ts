import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { readAudit } from "../../../src/telemetry/audit/read.ts";
import { verifyAudit } from "../../../src/telemetry/audit/verify.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { LIBRARY } from "../../support/main-program.ts";
import { misbehaving } from "../../support/servers.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-hub-audit-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function records(home: string) {
  const found = [];
  for await (const { record } of readAudit(join(home, "audit"))) found.push(record);
  return found;
}

describe("[guard-18a] the audit of a hub", () => {
  it("has a record for each call and each answer, with hashes instead of arguments", async () => {
    const home = join(dir, "plain");
    const registry = new ToolRegistry();
    registry.register({
      name: "pay",
      description: "Pays.",
      parameters: { type: "object" },
      execute: async () => ({ content: [] }),
    });
    const hub = await createHub({ tools: { ask: ["pay"], deny: ["never"] } }, { home, registry, onAsk: () => "once" });
    await hub.call({ name: "pay", arguments: { to: "somebody in particular" } });
    await hub.call({ name: "nothing" });
    await hub.close();

    const found = await records(home);
    expect(found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "decision", name: "pay", answer: "once", decision: "allow" }),
        expect.objectContaining({ type: "call", name: "pay", outcome: "ok", argumentsHash: expect.any(String) }),
        expect.objectContaining({ type: "call", name: "nothing", outcome: "not_found" }),
      ]),
    );
    expect(JSON.stringify(found)).not.toContain("somebody in particular");
    expect(await verifyAudit(join(home, "audit"))).toMatchObject({ ok: true });
  });

  it("[guard-18d] knows of a call that was under way when the process was killed", async () => {
    const home = join(dir, "killed");
    const code = `
      import { createHub } from ${JSON.stringify(LIBRARY)};
      const hub = await createHub(${JSON.stringify({ mcpServers: { a: misbehaving("hang") } })}, { home: ${JSON.stringify(home)} });
      void hub.call({ name: "a__echo", arguments: { text: "x" } });
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 300);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "ignore" });
    await once(child, "exit");
    const found = await records(home);
    expect(JSON.stringify(found)).toContain("a__echo");
    expect(found.filter((record) => record.type === "call")).toEqual([]);
    expect(await verifyAudit(join(home, "audit"))).toMatchObject({ ok: true });
    // The next start ends the server that was left behind.
    await (await createHub({}, { home })).close();
  });
});
