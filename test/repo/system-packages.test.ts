import { describe, expect, it } from "vitest";
import { installSystemPackages, needsSystemPackages } from "../../scripts/bootstrap/system-packages.mjs";

const ALL = [
  "/usr/bin/chromium",
  "/usr/bin/firefox-esr",
  "/usr/lib/postgresql",
  "/usr/sbin/nats-server",
  "/usr/bin/bwrap",
  "/usr/bin/podman",
  "/usr/sbin/runc",
];

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
    expect(machineWith(ALL, true)).toEqual({ ran: [], said: [] });
    expect(machineWith(ALL, false)).toEqual({ ran: [], said: [] });
  });

  it("[spine-02a] are installed alone, as root", () => {
    const without = (...paths: string[]): string[] => ALL.filter((path) => !paths.includes(path));
    const { ran } = machineWith(without("/usr/lib/postgresql"), true);
    expect(ran).toEqual(["apt-get install -y --no-install-recommends postgresql"]);
    // All in one go.
    expect(machineWith(without("/usr/bin/bwrap", "/usr/bin/podman", "/usr/sbin/nats-server"), true).ran).toEqual([
      "apt-get install -y --no-install-recommends nats-server bubblewrap podman containernetworking-plugins iptables",
    ]);
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
    expect(said[0]).toMatch(
      /skipped: chromium, fonts-liberation, firefox-esr, postgresql, nats-server, bubblewrap, podman.*, runc missing/,
    );
  });

  it("[spine-02a] are not looked for by a run that has no use for them", () => {
    expect(needsSystemPackages([])).toBe(true);
    expect(needsSystemPackages(["--reporter=dot"])).toBe(true);
    expect(needsSystemPackages(["test/store"])).toBe(true);
    expect(needsSystemPackages(["test/upstream/sandbox"])).toBe(true);
    expect(needsSystemPackages(["test/cluster"])).toBe(true);
    expect(needsSystemPackages(["test/policy/decide.test.ts"])).toBe(false);
  });
});
