import { spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { logWarnings } from "../../src/cli/serve/hub-log.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { storeNoteFile, writeStoreNote } from "../../src/hub/create/open-home.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { databaseFile, openStore } from "../../src/store/open-store.ts";
import { Log } from "../../src/telemetry/log.ts";
import { MAIN } from "../support/main-program.ts";
import { writeSkill } from "../support/skill-folder.ts";
import { type Finished, type Workspace, workspace } from "./run-cli.ts";

const AWAY = { kind: "postgres", place: "postgres://team@db.example/toolcrib" } as const;

describe("[oper-02c] the store of a command", () => {
  it("is not guessed where the config cannot be used", async () => {
    const place = workspace();
    place.write("toolcrib.json", '{ "store": "postgres://team@db.example/toolcrib", ');
    writeSkill(place.dir, "notes");
    for (const args of [
      ["audit", "verify"],
      ["backup", "copy.tar.gz"],
      ["skill", "import", "notes"],
      ["skill", "list", "--config", "toolcrib.json"],
    ]) {
      const { code, stderr } = await place.runHere(args);
      expect([args, code]).toEqual([args, 1]);
      expect(stderr).toContain("toolcrib.json");
    }
    expect((await place.runHere(["skill", "list"])).code).toBe(0);
    await writeStoreNote(place.home, AWAY);
    expect((await place.runHere(["skill", "list"])).code).toBe(1);
    expect(existsSync(databaseFile(place.home))).toBe(false);
    expect(existsSync(join(place.dir, "copy.tar.gz"))).toBe(false);
  });

  it("is refused or warned of where the home was last used with another and no config says so", async () => {
    const place = workspace();
    await writeStoreNote(place.home, AWAY);
    for (const args of [
      ["audit", "verify"],
      ["backup", "copy.tar.gz"],
    ]) {
      const { code, stderr } = await place.runHere(args);
      expect([args, code]).toEqual([args, 1]);
      expect(stderr).toContain("db.example/toolcrib");
      expect(stderr).toContain("--config");
    }
    const listed = await place.runHere(["skill", "list"]);
    expect([listed.code, listed.stderr]).toEqual([0, expect.stringContaining("db.example/toolcrib")]);
    place.configure({});
    expect((await place.runHere(["audit", "verify"])).code).toBe(0);
    expect(existsSync(storeNoteFile(place.home))).toBe(true);
  });

  it("is the home's own again once a hub used that", async () => {
    const place = workspace();
    place.configure({});
    await writeStoreNote(place.home, AWAY);
    const env = { TOOLCRIB_HOME: place.home };
    const hub = await createHub(await loadConfig({ env, cwd: place.dir, file: place.configFile }), { env });
    await hub.close();
    expect(existsSync(storeNoteFile(place.home))).toBe(false);
  });
});

it("[oper-02c] the log begins with what came up before anybody could listen", async () => {
  const place = workspace();
  await writeStoreNote(place.home, AWAY);
  const env = { TOOLCRIB_HOME: place.home };
  const hub = await createHub(await loadConfig({ env, cwd: place.dir }), { env });
  const lines: string[] = [];
  logWarnings(
    hub,
    new Log({ format: "pretty", level: "warn", write: (line) => void lines.push(line), mask: (line) => line }),
  );
  await hub.close();
  expect(lines).toEqual([expect.stringContaining("db.example/toolcrib")]);
});

/** Root may write everywhere, so its program runs without that right; the clone may be closed to every other user. */
async function runAsReader(
  place: Workspace,
  args: readonly string[],
): Promise<Pick<Finished, "code" | "stdout" | "stderr">> {
  const program = [process.execPath, MAIN, ...args];
  const [command = "", ...rest] =
    process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search", ...program] : program;
  const child = spawn(command, rest, {
    cwd: place.dir,
    env: { PATH: process.env["PATH"], HOME: place.home, TOOLCRIB_HOME: place.home },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<number | null>((done) => child.on("close", done));
  const [code, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

it.skipIf(process.platform === "win32")("[oper-02c] a home that cannot be written to can be looked at", async () => {
  const place = workspace();
  place.configure({});
  await (await openStore({ home: place.home }))?.close();
  const files = readdirSync(place.home).map((name) => join(place.home, name));
  for (const file of files) chmodSync(file, 0o444);
  chmodSync(place.home, 0o555);
  try {
    for (const args of [["status"], ["skill", "list"], ["audit", "verify"]]) {
      const { code, stderr } = await runAsReader(place, args);
      expect([args, code, stderr]).toEqual([args, 0, expect.stringContaining("is not seen")]);
    }
    expect((await runAsReader(place, ["backup", "copy.tar.gz"])).code).not.toBe(0);
    expect(existsSync(join(place.dir, "copy.tar.gz"))).toBe(false);
  } finally {
    chmodSync(place.home, 0o755);
  }
});
