import { chmodSync, mkdirSync, symlinkSync, writeFileSync, cpSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { homeCheck, nodeCheck } from "../../src/cli/commands/doctor.ts";
import type { ServerInfo } from "../../src/model/server-state.ts";
import { BIN, bundled, misbehaving, missingProgram, workspace } from "./run-cli.ts";

interface Report {
  ok: boolean;
  checks: {
    area: string;
    status: string;
    message: string;
    hint?: string;
    server?: string;
    details?: Record<string, unknown>;
  }[];
}

describe("[spine-19d] status", () => {
  it("shows every server with its state and reason, and exits 0", async () => {
    const place = workspace();
    place.configure({
      ok: misbehaving("ok"),
      broken: missingProgram,
      crashes: { ...misbehaving("crash-on-start", "3"), restart: false },
      off: { ...misbehaving("ok"), enabled: false },
      lazy: { ...misbehaving("ok"), autoConnect: false },
    });
    const json = await place.run(["status", "--json"]);
    expect(json.code).toBe(0);
    const byId = new Map(json.json<ServerInfo[]>().map((info) => [info.id, info]));
    expect(byId.get("ok")).toMatchObject({
      state: "ready",
      status: "connected",
      transport: "stdio",
      toolCount: 12,
      serverVersion: "1.0.0",
      lastError: null,
    });
    expect(byId.get("broken")).toMatchObject({
      state: "failed",
      status: "error",
      lastError: expect.stringContaining("toolcrib-no-such-program"),
    });
    expect(byId.get("crashes")).toMatchObject({
      status: "error",
      lastError: expect.stringContaining("MISBEHAVING_KEY is not set"),
    });
    expect(byId.get("off")).toMatchObject({ state: "disabled", status: "disconnected" });
    expect(byId.get("lazy")).toMatchObject({ state: "idle" });

    const table = await place.run(["status"]);
    expect(table.code).toBe(0);
    expect(table.stdout).toMatch(
      /^ID +STATE +TRANSPORT +TOOLS +VERSION +TIME +FROM +REASON\nok +ready +stdio +12 +1\.0\.0 +\d+ ms +\S+toolcrib\.json/,
    );
    expect(table.stdout).toMatch(/^broken +failed +stdio +- +- .*toolcrib-no-such-program/m);
  });

  it("an empty config gives an empty list and a note", async () => {
    const place = workspace();
    expect((await place.run(["status", "--json"])).json()).toEqual([]);
    expect((await place.run(["status"])).stderr).toContain("toolcrib add");
  });
});

describe("[spine-19d] doctor", () => {
  it("is content with a good set-up and measures each server", async () => {
    const place = workspace();
    place.configure({ memory: bundled("memory"), lazy: { ...misbehaving("ok"), autoConnect: false } });
    const { code, stdout } = await place.run(["doctor", "--json"]);
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as Report;
    expect(report.ok).toBe(true);
    expect(report.checks.map((check) => check.area)).toEqual(
      expect.arrayContaining(["node", "home", "config", "server"]),
    );
    expect(report.checks.find((check) => check.server === "memory")?.details).toMatchObject({
      era: "legacy",
      ms: expect.any(Number),
      toolCount: 9,
    });
    expect(report.checks.find((check) => check.server === "lazy")?.status).toBe("ok");
    expect((await place.run(["doctor"])).stdout).toMatch(/^ok +node .*\n[^]*No problems found\.\n$/);
  });

  it("[whole-01b] doctor reports a wrong entry once: at its server, or at the config if the server is disabled", async () => {
    const place = workspace();
    place.configure({ wrong: { command: "x", timeout: "5" }, off: { command: "x", oddity: 1, disabled: true } });
    const { checks } = JSON.parse((await place.run(["doctor", "--json"])).stdout) as Report;
    const found = checks.filter(({ message }) => /timeout|oddity/.test(message));
    expect(found.map(({ area, server, status }) => `${server ?? area} ${status}`).toSorted()).toEqual([
      "config warn",
      "wrong fail",
    ]);
  });

  it("exits 1 and says what to do when a server is down, a tool is bad or a secret is plain", async () => {
    const place = workspace();
    place.configure({ broken: missingProgram, odd: { ...misbehaving("bad-tools"), env: { API_KEY: "hunter2" } } });
    const { code, stdout } = await place.run(["doctor", "--json"]);
    expect(code).toBe(1);
    const { ok, checks } = JSON.parse(stdout) as Report;
    expect(ok).toBe(false);
    const broken = checks.find((check) => check.server === "broken");
    expect(broken).toMatchObject({ status: "fail", message: expect.stringContaining("toolcrib-no-such-program") });
    expect(broken?.hint).toMatch(/command/);
    const odd = checks.filter((check) => check.server === "odd");
    expect(odd.some((check) => check.status === "warn" && check.message.includes("no-text"))).toBe(true);
    // What a server warns of is told once, with the server.
    const told = checks.map(({ server, message }) => (server === undefined ? message : `${server}: ${message}`));
    expect(told).toEqual([...new Set(told)]);
    expect(
      checks.some(
        (check) => check.area === "config" && check.message.includes("API_KEY") && check.hint?.includes("secret://env"),
      ),
    ).toBe(true);
    expect(stdout).not.toContain("hunter2");
    const text = await place.run(["doctor"]);
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(/^fail {2}broken .*\n {8,}\S/m);
  });

  it("tells every problem of a config that cannot be loaded", async () => {
    const place = workspace();
    place.write("toolcrib.json", '{ "mcpServers": { "a": { "command": 7 } }, "cluster": {} }');
    const { code, stdout } = await place.run(["doctor", "--json"]);
    expect(code).toBe(1);
    const failed = (JSON.parse(stdout) as Report).checks.filter((check) => check.area === "config");
    expect(failed.map((check) => check.status)).toEqual(["fail", "fail"]);
    expect(failed[0]?.message).toMatch(/toolcrib\.json:1:\d+/);
    expect((await place.run(["list", "--json"])).json()).toMatchObject({ error: { code: "invalid_config" } });
  });

  it("checks Node and the home", () => {
    expect(nodeCheck("22.14.0").status).toBe("ok");
    expect(nodeCheck("22.13.9")).toMatchObject({ status: "fail", hint: expect.stringContaining("nodejs.org") });
    expect(nodeCheck("20.20.2").status).toBe("fail");
    const place = workspace();
    expect(homeCheck({ TOOLCRIB_HOME: join(place.dir, "not", "yet") }).status).toBe("ok");
    writeFileSync(join(place.dir, "file"), "");
    expect(homeCheck({ TOOLCRIB_HOME: join(place.dir, "file", "home") }).status).toBe("fail");
  });
});

describe("bin on an old Node", () => {
  /** A preload that makes this Node say it is an old one, unless it is the second start. */
  const PRETEND = `if (!process.env.TOOLCRIB_REEXECUTED) {
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.0" } });
  }`;

  it("goes on with the Node of the checkout's bootstrap, and passes arguments, output and exit code on", async () => {
    const place = workspace();
    const bin = fakePackage(place.dir, `process.stdout.write(process.argv.slice(2).join() + "\\n"); process.exit(7);`);
    const bundled = join(place.dir, "package/.dev/node/node_modules/node-test/bin");
    mkdirSync(bundled, { recursive: true });
    symlinkSync(process.execPath, join(bundled, "node"));
    const pretend = place.write("pretend.mjs", PRETEND);
    const result = await place.run(["a", "--b"], { main: bin, nodeArgs: ["--import", pretend] });
    expect(result).toMatchObject({ code: 7, stdout: "a,--b\n", stderr: "" });
  });

  it("says in one line what is needed where there is none", async () => {
    const place = workspace();
    const bin = fakePackage(place.dir, "");
    const pretend = place.write("pretend.mjs", PRETEND);
    const { code, stdout, stderr } = await place.run(["list"], { main: bin, nodeArgs: ["--import", pretend] });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^toolcrib needs Node 22\.14 or newer; this is Node 18\.20\.0.*\n$/);
  });
});

/** The real bin in a package whose command line is the given script. */
function fakePackage(dir: string, script: string): string {
  for (const folder of ["bin", "dist/cli"]) mkdirSync(join(dir, "package", folder), { recursive: true });
  writeFileSync(join(dir, "package/package.json"), '{"type": "module"}');
  writeFileSync(join(dir, "package/dist/cli/main.cjs"), script);
  const bin = join(dir, "package/bin/toolcrib.js");
  cpSync(dirname(BIN), dirname(bin), { recursive: true });
  chmodSync(bin, 0o755);
  return bin;
}
