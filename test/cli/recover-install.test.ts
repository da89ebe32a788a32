import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ChangeSet } from "../../src/files/change-set/change-set.ts";
import { withLock } from "../../src/files/lock-file.ts";
import { changesDir, installLock, pendingFile } from "../../src/hub/install/install-files.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";

const CHANGE_SET = resolve(import.meta.dirname, "../../src/files/change-set/change-set.ts");
const TOLD = "Restored files that an interrupted command had left half changed: ";

interface Half {
  readonly place: Workspace;
  readonly before: string;
  readonly secret: string;
}

/** What an install leaves that is killed after it has written a server and its secret. */
function killedInstall(): Half {
  const place = workspace();
  place.configure({ files: misbehaving("ok") });
  const before = readFileSync(place.configFile, "utf8");
  const secret = join(place.home, "secrets/TOKEN");
  const half = JSON.stringify({ mcpServers: { files: misbehaving("ok"), half: misbehaving("ok") } });
  const program = `
    import { ChangeSet } from ${JSON.stringify(CHANGE_SET)};
    const changes = new ChangeSet({ journalDir: ${JSON.stringify(changesDir(place.home))} });
    await changes.editFile(${JSON.stringify(secret)}, () => "hunter2\\n", { mode: 0o600 });
    await changes.editFile(${JSON.stringify(place.configFile)}, () => ${JSON.stringify(half)});
    process.kill(process.pid, "SIGKILL");`;
  const { signal, pid } = spawnSync(process.execPath, ["--input-type=module", "--eval", program]);
  expect(signal).toBe("SIGKILL");
  writeFileSync(pendingFile(place.home), JSON.stringify({ run: "r", pid, secrets: [], skills: [] }));
  expect(readFileSync(place.configFile, "utf8")).toBe(half);
  return { place, before, secret };
}

function expectAsBefore({ place, before, secret }: Half): void {
  expect(readFileSync(place.configFile, "utf8")).toBe(before);
  expect([secret, pendingFile(place.home), changesDir(place.home)].filter((path) => existsSync(path))).toEqual([]);
}

describe("[skill-11e] after an install was killed", () => {
  it.each([
    [["list", "--json"], 0],
    [["status", "--json"], 0],
    [["doctor", "--json"], 0],
    [["mcp"], 0],
    [["mcp", "--server", "half"], 1],
    [["call", "half__ok"], 1],
    [["remove", "half"], 1],
    [["disable", "half"], 1],
    [["connect", "cursor", "--server", "half"], 1],
  ])("%j undoes it first, and says so in one line", async (args, exit) => {
    const half = killedInstall();
    const { code, stdout, stderr } = await half.place.run(args);
    expect(code).toBe(exit);
    expect(stdout).not.toContain("half");
    const told = stderr.split("\n").filter((line) => line.includes("interrupted"));
    expect(told).toEqual([`warning: ${TOLD}${half.place.configFile}, ${half.secret}`]);
    expectAsBefore(half);
  });

  it("add and import do not build on it", async () => {
    for (const args of [
      ["add", "mine", "--", "true"],
      ["import", "other.json"],
    ]) {
      const half = killedInstall();
      half.place.write("other.json", JSON.stringify({ mcpServers: { mine: { command: "true" } } }));
      expect((await half.place.runHere(args)).code).toBe(0);
      const { mcpServers } = JSON.parse(readFileSync(half.place.configFile, "utf8")) as { mcpServers: object };
      expect(Object.keys(mcpServers)).toEqual(["files", "mine"]);
      expect(existsSync(half.secret)).toBe(false);
    }
  });

  it("several commands at once all go on with what was there before", async () => {
    const half = killedInstall();
    const runs = await Promise.all([1, 2, 3].map(() => half.place.run(["status", "--json"])));
    for (const run of runs) expect(run.json<{ id: string }[]>().map(({ id }) => id)).toEqual(["files"]);
    expect(runs.filter(({ stderr }) => stderr.includes(TOLD))).toHaveLength(1);
    expectAsBefore(half);
  });

  it("one that is still at work is left alone, and the command goes on", async () => {
    const place = workspace();
    place.configure({ files: misbehaving("ok") });
    const changes = new ChangeSet({ journalDir: changesDir(place.home) });
    await changes.editFile(place.configFile, () => JSON.stringify({ mcpServers: { other: misbehaving("ok") } }));
    writeFileSync(pendingFile(place.home), JSON.stringify({ run: "r", pid: process.pid, secrets: [], skills: [] }));
    await withLock(installLock(place.home), async () => {
      const { code, stderr, json } = await place.run(["status", "--json"]);
      expect([code, stderr]).toEqual([0, ""]);
      expect(json<{ id: string }[]>().map(({ id }) => id)).toEqual(["other"]);
    });
    expect(existsSync(pendingFile(place.home))).toBe(true);
    await changes.done();
    expect(readFileSync(place.configFile, "utf8")).toContain("other");
  });

  it("nothing of the recovery is loaded where there is nothing to recover", async () => {
    const place = workspace();
    place.configure({ files: misbehaving("ok") });
    const hook = `import { registerHooks } from "node:module";
      registerHooks({ load(url, context, next) {
        if (url.includes("install-journal")) process.stderr.write("loaded " + url + "\\n");
        return next(url, context);
      } });`;
    const nodeArgs = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`];
    expect((await place.run(["status", "--json"], { nodeArgs })).stderr).toBe("");
    mkdirSync(changesDir(place.home));
    expect((await place.run(["status", "--json"], { nodeArgs })).stderr).toContain("install-journal");
    // What tells of nothing is gone, so that the next one need not look.
    expect((await place.run(["status", "--json"], { nodeArgs })).stderr).toBe("");
    await place.runHere(["connect", "cursor"]);
    expect((await place.run(["status", "--json"], { nodeArgs })).stderr).toBe("");
  });
});
