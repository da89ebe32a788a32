import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bundled, misbehaving, missingProgram, workspace } from "./run-cli.ts";

describe("[joy-15a] toolcrib test", () => {
  it("passes if the server starts, has the tools and the calls succeed", async () => {
    const place = workspace();
    place.configure({ e: bundled("everything") });
    const call = ["--call", 'get-sum={"a": 2, "b": 40}', "--call", 'e__echo={"message": "x"}'];
    const { code, stdout } = await place.runHere(["test", "e", "--tool", "echo", ...call]);
    expect(stdout).toMatch(
      /^ok +e connects: \d+ tools, \d+ ms\nok +it has echo\nok +get-sum runs\nok +e__echo runs\n$/,
    );
    expect(code).toBe(0);
  });

  it("fails with a code that says why, for programs too", async () => {
    const place = workspace();
    place.configure(
      { e: bundled("everything"), gone: { ...missingProgram, restart: false } },
      { tools: { deny: ["e__get-env"], ask: ["e__get-sum"] } },
    );
    const missing = await place.runHere(["test", "e", "--tool", "ecoh", "--tool", "echo", "--json"]);
    expect([missing.code, missing.stderr]).toEqual([1, ""]);
    expect(missing.json()).toMatchObject({
      server: "e",
      ok: false,
      checks: [{ ok: true }, { ok: false, error: { code: "not_found", hint: "Did you mean echo?" } }, { ok: true }],
    });
    expect(await place.runHere(["test", "gone"])).toMatchObject({
      code: 4,
      stdout: expect.stringContaining("failed  gone"),
    });
    expect(await place.runHere(["test", "e", "--call", 'get-sum={"a": 1, "b": 1}'])).toMatchObject({ code: 3 });
    expect(await place.runHere(["test", "e", "--call", "get-env"])).toMatchObject({ code: 1 });
    expect(await place.runHere(["test", "e", "--call", "get-sum={}"])).toMatchObject({
      code: expect.toSatisfy((code) => code > 0),
    });
    expect(await place.runHere(["test", "e", "--call", "get-sum=1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not a JSON object"),
    });
    expect(await place.runHere(["test", "ee"])).toMatchObject({ code: 1, stderr: "  Known servers: e, gone.\n" });
    expect(await place.runHere(["test", "e", "--tool", "ecoh"])).toMatchObject({
      stderr: expect.stringContaining("  Did you mean echo?"),
    });
  });
});

describe("[joy-14d] add", () => {
  it("starts the server, says whether it works and what is next", async () => {
    const place = workspace();
    place.configure({});
    const { command, args } = misbehaving("ok") as { command: string; args: string[] };
    const added = await place.runHere(["add", "good", "--", command, ...args]);
    expect([added.code, added.stderr]).toEqual([0, ""]);
    expect(added.stdout).toMatch(/^Added good in .*\nIt works: 12 tools, \d+ ms\. To see them: toolcrib list good\n$/);

    const broken = await place.runHere(["add", "bad", "--", "toolcrib-no-such-program"]);
    expect([broken.code, broken.stdout]).toEqual([0, `Added bad in ${place.configFile}\n`]);
    expect(broken.stderr).toMatch(/bad does not work yet: command not found: toolcrib-no-such-program\n {2}\S/);
    expect(broken.stderr).toContain("To try again: toolcrib test bad.");

    const json = await place.runHere(["add", "again", "--json", "--", command, ...args]);
    expect(json.json()).toMatchObject({ id: "again", changed: true, test: { ok: true, tools: 12 } });
  });

  it("starts nothing with --no-test, --disabled and --dry-run", async () => {
    const place = workspace();
    place.configure({});
    const mark = join(place.dir, "started");
    const start = ["--", process.execPath, "-e", `require("fs").writeFileSync(${JSON.stringify(mark)}, "")`];
    for (const [id, flag] of [
      ["a", "--no-test"],
      ["b", "--disabled"],
      ["c", "--dry-run"],
    ] as const) {
      const { code, stderr } = await place.runHere(["add", id, flag, ...start]);
      expect([code, stderr]).toEqual([0, ""]);
    }
    expect(existsSync(mark)).toBe(false);
    expect(Object.keys((JSON.parse(place.read("toolcrib.json")) as { mcpServers: object }).mcpServers)).toEqual([
      "a",
      "b",
    ]);
  });
});
