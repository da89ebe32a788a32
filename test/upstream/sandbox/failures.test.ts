import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { availableSandboxes } from "../../../src/upstream/sandbox/open-sandbox.ts";
import { explainEnd } from "../../../src/upstream/sandbox/bubblewrap-sandbox.ts";
import { readSandbox } from "../../../src/upstream/sandbox/sandbox-settings.ts";

const settings = readSandbox({ memory: "1k", network: "none" }, "/", {});
const end = { exitCode: 1, signal: null, stderr: "", heard: false };

describe("[cage-01b] why a cage failed", () => {
  it.each([
    [
      "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
      "max_user_namespaces",
    ],
    ["bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"],
    ["bwrap: Creating new namespace failed: Operation not permitted", '"container"'],
    ["bwrap: Unknown option --perms", "0.5 or later"],
    ["bwrap: execvp /opt/x/server: No such file or directory", "sandbox.read"],
    ["bwrap: Can't mount tmpfs on /newroot/tmp: No space left on device", '"container"'],
    ["toolcrib-cage: 1: cannot create /g/cgroup.procs: Permission denied", '"container"'],
  ])("%s", (stderr, hint) => {
    const error = explainEnd({ ...end, stderr: `something before\n${stderr}` }, settings, false);
    // Trying again would end the same way.
    expect(error).toMatchObject({ code: "invalid_config", hint: expect.stringContaining(hint) });
  });

  it.each([
    "setpriv: setresuid failed: Operation not permitted",
    "setpriv: activate capabilities: Operation not permitted",
  ])("[trust-02h] %s: names what root lacks, and not user namespaces", (stderr) => {
    const error = explainEnd({ ...end, stderr }, settings, false);
    expect(error).toMatchObject({ code: "invalid_config", hint: expect.stringContaining("CAP_SETUID") });
    expect(`${error?.message} ${error?.hint}`).not.toMatch(/namespace/i);
  });

  it("leaves the program's own words, with what a cage may have to do with them", () => {
    const error = explainEnd({ ...end, stderr: "Error: Cannot find module '/srv/x.mjs'" }, settings, false);
    expect(error).toMatchObject({ code: "server_unavailable", hint: expect.stringContaining("`sandbox` names") });
    expect(error?.message).toBe(
      "exited with code 1; the last lines of its stderr:\nError: Cannot find module '/srv/x.mjs'",
    );
    expect(explainEnd({ ...end, heard: true }, settings, false)).toBeUndefined();
    expect(explainEnd({ ...end, exitCode: 0 }, settings, false)).toBeUndefined();
    expect(explainEnd({ ...end, exitCode: null }, settings, false)).toBeUndefined();
  });

  it("[cage-02d] names the limit when memory ran out", () => {
    const error = explainEnd({ ...end, exitCode: 137, heard: true }, settings, true);
    expect(error?.message).toContain("more memory than its sandbox allows (1024 bytes)");
  });
});

describe("[cage-01b] availableCages", () => {
  it("says why one is not to be had, and what to do", async () => {
    const cages = await availableSandboxes({ env: { PATH: "/nowhere" }, containers: {} });
    expect(cages.map(({ kind, available }) => [kind, available])).toEqual([
      ["none", true],
      ["bubblewrap", false],
      ["container", false],
    ]);
    expect(cages[1]).toMatchObject({
      reason: expect.stringContaining("not installed"),
      hint: expect.stringContaining("apt install"),
    });
  });
});

describe("a hub on a machine without bubblewrap", () => {
  it("[cage-01a] [cage-01b] refuses the servers that want it, by their own word or the hub's, and no others", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-no-cage-"));
    const args = [join(import.meta.dirname, "../../fixtures/hostile-server.mjs")];
    const server = { command: process.execPath, args };
    const mcpServers = {
      plain: server,
      own: { ...server, sandbox: {} },
      free: { ...server, sandbox: "none" as const },
    };
    await using hub = await createHub(
      { mcpServers, sandbox: "bubblewrap" },
      { home, env: { PATH: "/nowhere" }, store: false },
    );
    const states = Object.fromEntries(hub.servers.list().map(({ id, state, lastError }) => [id, [state, lastError]]));
    const refused = ["failed", expect.stringMatching(/bubblewrap is (?:not installed|only there on Linux)/)];
    // Failed for good: to try again would not install it.
    expect(states).toEqual({ plain: refused, own: refused, free: ["ready", null] });
    rmSync(home, { recursive: true, force: true });
  });
});
