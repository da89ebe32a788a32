import { describe, expect, it } from "vitest";
import { installSystemPackages, needsSystemPackages } from "../../scripts/bootstrap/system-packages.mjs";

/** A machine that has these paths; `failures` are taken off one by one. */
function machineWith(paths: readonly string[], root: boolean, failures: (string | undefined)[] = []) {
  const ran: string[] = [];
  const said: string[] = [];
  const machine = {
    exists: (path: string) => paths.includes(path),
    mayInstall: () => root,
    run: (command: readonly string[]) => {
      ran.push(command.join(" "));
      return failures.shift();
    },
  };
  installSystemPackages({ say: (line) => said.push(line), machine });
  return { ran, said };
}

describe("programs that tests need", () => {
  it("[spine-02a] are left alone where they are", () => {
    const both = ["/usr/bin/chromium", "/usr/lib/postgresql"];
    expect(machineWith(both, true)).toEqual({ ran: [], said: [] });
    expect(machineWith(both, false)).toEqual({ ran: [], said: [] });
  });

  it("[spine-02a] are installed alone, as root", () => {
    const { ran } = machineWith(["/usr/bin/chromium"], true);
    expect(ran).toEqual(["apt-get install -y --no-install-recommends postgresql"]);
  });

  it("[spine-02a] are looked for in newer lists when the first attempt fails", () => {
    const { ran, said } = machineWith([], true, ["no such package"]);
    expect(ran.map((command) => command.split(" ")[1])).toEqual(["install", "update", "install"]);
    expect(said).toHaveLength(1);
  });

  it("[spine-02a] are missed with a reason, and never stop the tests", () => {
    expect(machineWith([], true, ["no network", "no network either"]).said.at(-1)).toContain("no network either");
    const { ran, said } = machineWith([], false);
    expect(ran).toEqual([]);
    expect(said[0]).toMatch(/skipped: chromium, fonts-liberation, postgresql missing/);
  });

  it("[spine-02a] are not looked for by a run that has no use for them", () => {
    expect(needsSystemPackages([])).toBe(true);
    expect(needsSystemPackages(["--reporter=dot"])).toBe(true);
    expect(needsSystemPackages(["test/store"])).toBe(true);
    expect(needsSystemPackages(["test/policy/decide.test.ts"])).toBe(false);
  });
});
