import { spawnSync } from "node:child_process";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BIN, bundled, type Workspace, workspace } from "./run-cli.ts";

async function completed(place: Workspace, ...words: string[]): Promise<string[]> {
  const { code, stdout } = await place.run(["completion", "words", "--", ...words]);
  expect(code).toBe(0);
  return stdout.split("\n").filter(Boolean);
}

describe("[joy-14b] the completion of shells", () => {
  it("knows commands, options, actions, clients and the servers of the config", async () => {
    const place = workspace();
    place.configure({ files: bundled("filesystem", place.dir), memory: bundled("memory") });
    expect(await completed(place, "au")).toEqual(["audit", "auth"]);
    expect(await completed(place, "audit", "--fol")).toEqual(["--follow"]);
    expect(await completed(place, "auth", "log")).toEqual(["login", "logout"]);
    expect(await completed(place, "connect", "curs")).toEqual(["cursor"]);
    expect(await completed(place, "remove", "")).toEqual(["files", "memory"]);
    // Without a hub no server is started for it.
    expect(await completed(place, "call", "")).toEqual([]);
  });

  it("knows the tools of the hub that runs, in a real bash", async () => {
    const place = workspace();
    place.configure({ e: bundled("everything") });
    const { child, finished } = place.start(["serve", "--port", "0"]);
    onTestFinished(async () => {
      child.kill("SIGTERM");
      await finished;
    });
    await vi.waitFor(async () => expect(await completed(place, "call", "e__ec")).toEqual(["e__echo"]), {
      timeout: 60_000,
      interval: 200,
    });
    if (spawnSync("bash", ["--version"]).error !== undefined) {
      console.warn("Not tested here: completion in bash: there is no bash");
      return;
    }
    const { stdout: script } = await place.run(["completion", "bash"]);
    const words = `COMP_WORDS=(toolcrib call e__get-s); COMP_CWORD=2; _toolcrib; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const program = `toolcrib() { "${process.execPath}" "${BIN}" "$@"; }\n${script}\n${words}`;
    const bash = spawnSync("bash", ["-c", program], { cwd: place.dir, env: place.env(), encoding: "utf8" });
    expect(bash.stdout.split("\n").filter(Boolean)).toContain("e__get-sum");
  });

  it("has a script for zsh and fish, and says what it does not know", async () => {
    const place = workspace();
    for (const shell of ["zsh", "fish"]) {
      const { code, stdout } = await place.runHere(["completion", shell]);
      expect([code, stdout]).toEqual([0, expect.stringContaining("toolcrib completion words -- ")]);
      const checked = spawnSync(shell, ["-n"], { input: stdout, encoding: "utf8" });
      if (checked.error === undefined) expect(checked.stderr).toBe("");
      else console.warn(`Not tested here: the syntax for ${shell}: it is not installed`);
    }
    expect(await place.runHere(["completion", "csh"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("fish"),
    });
  });
});
