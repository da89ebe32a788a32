/** What an operator sees of a running server: its process, its log, and what its tools cost. */
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../../src/contract/operations.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { processUsage } from "../../../src/upstream/stdio/process-table.ts";
import { eventually } from "../../support/eventually.ts";
import { misbehaving } from "../../support/servers.ts";
import { isMissing } from "../../support/skips.ts";
import { place } from "../activity/place.ts";

const noProc = process.platform === "linux" ? undefined : "/proc";
isMissing("memory and CPU of servers", noProc);

/** Starts a child that works, and writes to stderr. */
const BUSY = `
  require("node:child_process").spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
  console.error("error: token s3cr3t-0123456789 is wrong");
  require(process.argv[1]);
`;

describe.skipIf(noProc !== undefined)("the process of a server", () => {
  it("[joy-06a] has its memory and CPU with everything that it started, and its restarts", async () => {
    const { hub: make } = await place();
    const { args = [] } = misbehaving("ok");
    const hub = await make(
      { mcpServers: { busy: misbehaving("ok"), off: { ...misbehaving("ok"), enabled: false } } },
      { clock: systemClock },
    );
    const usage = OPERATIONS.getServerProcess.output.parse(await hub.internals.servers.process("busy"));
    expect(usage).toMatchObject({ serverId: "busy", restarts: 0, process: { processes: 1 } });
    expect(usage.process?.memoryBytes).toBeGreaterThan(10_000_000);
    expect(Date.parse(usage.process?.startedAt ?? "")).toBeLessThanOrEqual(Date.now() + 1000);
    expect(args).not.toEqual([]);
    expect((await hub.internals.servers.process("off")).process).toBeNull();
    await expect(hub.internals.servers.process("absent")).rejects.toMatchObject({ code: "not_found" });
  });

  it("[joy-06a] counts the children of a program, and their work", async () => {
    const { spawn } = await import("node:child_process");
    const child = spawn(process.execPath, ["-e", BUSY, "node:fs"], { stdio: "ignore", detached: true });
    try {
      const usage = await eventually(async () => {
        const found = await processUsage([child.pid ?? 0]);
        return found?.processes === 2 && found.cpuPercent > 0 ? found : undefined;
      });
      expect(usage.memoryBytes).toBeGreaterThan(20_000_000);
    } finally {
      process.kill(-(child.pid ?? 0), "SIGKILL");
    }
    await eventually(async () => (await processUsage([child.pid ?? 0])) === undefined);
  });
});

describe("the log of a server", () => {
  it("[joy-06c] has what its program wrote, masked, and can be narrowed and continued", async () => {
    const { hub: make } = await place();
    const hub = await make({
      mcpServers: {
        broken: {
          command: process.execPath,
          args: ["-e", 'console.error("starting"); console.error("error: no key " + process.env.KEY); process.exit(3)'],
          env: { KEY: "s3cr3t-0123456789abcdef" },
          restart: false,
        },
      },
    });
    const { input, output } = OPERATIONS.getServerLog;
    const log = (wish: object) => output.parse(hub.internals.servers.log(input.parse({ serverId: "broken", ...wish })));
    await eventually(() => log({}).lines.length === 2);
    const { lines, last } = log({});
    expect(lines.map(({ level, source }) => [level, source])).toEqual([
      [null, "stderr"],
      ["error", "stderr"],
    ]);
    expect(JSON.stringify(lines)).not.toContain("s3cr3t");
    expect(log({ level: "error" }).lines).toHaveLength(1);
    expect(log({ q: "START" }).lines.map(({ text }) => text)).toEqual(["starting"]);
    expect(log({ after: last })).toMatchObject({ lines: [], last });
    expect(() => hub.internals.servers.log(input.parse({ serverId: "absent" }))).toThrow(/no server "absent"/);
  });
});

describe("the cost of tools", () => {
  it("[joy-06d] is estimated for each client, with and without search mode", async () => {
    const { hub: make } = await place();
    const hub = await make({
      mcpServers: { one: misbehaving("ok") },
      tools: { max: 5 },
      roles: { reader: { tools: { allow: ["look"] } } },
    });
    for (const role of [undefined, undefined, "reader"]) {
      hub.openSession({ door: "mcp", clientInfo: { name: role ?? "cursor" }, ...(role && { role }) });
    }
    const costs = OPERATIONS.getTokenCosts.output.parse(hub.internals.tokenCosts());
    const [many, few] = costs.clients;
    expect(many).toMatchObject({ client: "cursor", role: null, sessions: 2, isSearch: true, offered: { tools: 5 } });
    expect(many?.whole.tools).toBe(hub.view(hub.session).tools.length);
    expect(many?.whole.tokens).toBe(costs.tools.reduce((sum, { tokens }) => sum + tokens, 0));
    expect(many?.search).toMatchObject({ tools: 3 });
    expect(few).toMatchObject({
      client: "reader",
      sessions: 1,
      isSearch: false,
      offered: { tools: 1 },
      whole: { tools: 1 },
    });
    const cost = costs.tools.find(({ name }) => name === "look")?.tokens;
    const schema = { name: "look", description: "To look.", input_schema: { type: "object" } };
    expect(cost).toBe(Math.ceil(JSON.stringify(schema).length / 4));
  });
});
