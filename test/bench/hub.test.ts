import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { HubReport } from "../../bench/hub.bench.ts";
import { runProgram } from "../support/run-program.ts";

const script = resolve(import.meta.dirname, "../../bench/run.ts");
const out = await mkdtemp(join(tmpdir(), "toolcrib-bench-hub-"));
afterAll(() => rm(out, { recursive: true, force: true }));

it.skipIf(process.platform !== "linux")(
  "[counter-11a] the bench of the hub counts all processes of clients with one hub, with hubs of their own and with none",
  async () => {
    const run = await runProgram(process.execPath, [script, "hub", "--smoke", "--no-peers", "--out", out]);
    expect(run.code, run.stderr).toBe(0);
    const { clients, servers, rows, missing }: HubReport = JSON.parse(await readFile(join(out, "hub.json"), "utf8"));
    expect(missing).toEqual({});
    const [none, one, each] = rows;
    expect(none).toMatchObject({ what: "no gateway", processes: clients * servers, memoryRatio: 1, startRatio: 1 });
    // A bridge for each client, the hub, and each server once.
    expect(one).toMatchObject({ what: "Toolcrib, one hub", processes: clients + 1 + servers });
    expect(each).toMatchObject({ what: "Toolcrib, a hub for each client", processes: clients * (1 + servers) });
    for (const { pssMb, startMs, memoryRatio, startRatio } of rows) {
      for (const figure of [pssMb, startMs, memoryRatio, startRatio]) expect(figure).toBeGreaterThan(0);
    }
  },
  120_000,
);
