import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { logHubEvents } from "../../src/cli/serve/hub-log.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { readAudit } from "../../src/telemetry/audit/read.ts";
import { Log } from "../../src/telemetry/log.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { recordTraces } from "../support/trace-recorder.ts";

const home = mkdtempSync(join(tmpdir(), "toolcrib-call-ids-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("[oper-13a] the id of a call", () => {
  it("is the same in its outcome, log lines, audit records and span", async () => {
    const recorder = recordTraces();
    const lines: Record<string, unknown>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const registry = new ToolRegistry();
    for (const name of ["look", "pay", "never"]) {
      const execute = async (): Promise<{ content: [] }> => ({ content: [] });
      registry.register({ name, description: name, parameters: { type: "object" }, execute });
    }
    const hub = await createHub({ tools: { ask: ["pay"], deny: ["never"] } }, { home, registry, onAsk: () => "once" });
    logHubEvents(hub, new Log({ format: "json", level: "debug", write, mask: (line) => line }));
    const ids: Record<string, string> = {};
    for (const name of ["look", "pay", "never"]) ids[name] = (await hub.call({ name })).callId;
    recorder.stop();
    await hub.close();

    const called = lines.filter(({ durationMs }) => durationMs !== undefined);
    expect(called).toMatchObject([
      { level: "debug", message: "call", callId: ids["look"], tool: "look", server: "local", outcome: "ok" },
      { level: "debug", message: "call", callId: ids["pay"], tool: "pay", door: "library", outcome: "ok" },
      { level: "info", message: "call refused", callId: ids["never"], outcome: "denied" },
    ]);
    expect(lines.filter(({ callId }) => callId === ids["pay"]).map(({ message }) => message)).toEqual([
      "a call needs approval",
      "an approval was answered",
      "call",
    ]);
    const audited = new Map<string, unknown>();
    for await (const { record } of readAudit(join(home, "audit"))) {
      if (record.type === "call") audited.set(String(record.name), record.callId);
    }
    expect(Object.fromEntries(audited)).toEqual(ids);
    expect(recorder.spans.map(({ attributes }) => attributes["toolcrib.call_id"])).toEqual(Object.values(ids));
  });
});
