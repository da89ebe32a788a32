import { describe, expect, it } from "vitest";
import { bundled, missingProgram, workspace } from "./run-cli.ts";

describe("[joy-15a] toolcrib test", () => {
  it("passes if the server starts, has the tools and the calls succeed", async () => {
    const place = workspace();
    place.configure({ e: bundled("everything") });
    const call = ["--call", 'get-sum={"a": 2, "b": 40}', "--call", 'e__echo={"message": "x"}'];
    const { code, stdout } = await place.run(["test", "e", "--tool", "echo", ...call]);
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
    const missing = await place.run(["test", "e", "--tool", "ecoh", "--tool", "echo", "--json"]);
    expect([missing.code, missing.stderr]).toEqual([1, ""]);
    expect(missing.json()).toMatchObject({
      server: "e",
      ok: false,
      checks: [{ ok: true }, { ok: false, error: { code: "not_found", hint: "Did you mean echo?" } }, { ok: true }],
    });
    expect(await place.run(["test", "gone"])).toMatchObject({
      code: 4,
      stdout: expect.stringContaining("failed  gone"),
    });
    expect(await place.run(["test", "e", "--call", 'get-sum={"a": 1, "b": 1}'])).toMatchObject({ code: 3 });
    expect(await place.run(["test", "e", "--call", "get-env"])).toMatchObject({ code: 1 });
    expect(await place.run(["test", "e", "--call", "get-sum={}"])).toMatchObject({
      code: expect.toSatisfy((code) => code > 0),
    });
    expect(await place.run(["test", "e", "--call", "get-sum=1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not a JSON object"),
    });
    expect(await place.run(["test", "ee"])).toMatchObject({ code: 1 });
  });
});
