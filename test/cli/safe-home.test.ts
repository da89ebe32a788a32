/** A home that somebody else could have written to, or that leads elsewhere. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bundled, type Workspace, workspace } from "./run-cli.ts";
import { isMissing } from "../support/skips.ts";

const COMMANDS = [
  ["list"],
  ["status"],
  ["doctor"],
  ["skill", "list"],
  ["secrets", "check"],
  ["audit"],
  ["pins", "list"],
  ["call", "x"],
  ["mcp"],
  ["serve", "--port", "0"],
  ["backup", "copy.tar.gz"],
];

interface Refusal {
  readonly message: string;
  readonly hint: string;
}

async function refused(place: Workspace, args: readonly string[]): Promise<Refusal> {
  const { code, stdout, stderr } = await place.run([...args, "--json"]);
  expect({ args, code }, stderr).toEqual({ args, code: 1 });
  const { error } = JSON.parse(stdout) as { error: Refusal & { code: string } };
  expect(error.code).toBe("invalid_config");
  return error;
}

const isRoot = process.geteuid?.() === 0;
isMissing("a home of another user", isRoot ? undefined : "needs root");

describe("[trust-18a] a home", () => {
  it("that is a link to nothing is refused by every command, and nothing is made at its end", async () => {
    const place = workspace();
    rmSync(place.home, { recursive: true });
    symlinkSync(join(place.dir, "elsewhere"), place.home);
    for (const args of COMMANDS) {
      const { message, hint } = await refused(place, args);
      expect(message).toBe(`${place.home} is a link to ${join(place.dir, "elsewhere")}, which does not exist.`);
      expect(hint).toContain(`rm ${place.home}`);
    }
    expect(existsSync(join(place.dir, "elsewhere"))).toBe(false);
  });

  it("that cannot be written is named, with what to do", async () => {
    const place = workspace();
    rmSync(place.home, { recursive: true });
    place.write("file", "");
    const env = { TOOLCRIB_HOME: join(place.dir, "file", "home") };
    const { code, stderr } = await place.run(["add", "x", "--", "node", "y"], { env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: Toolcrib cannot write to its home: ENOTDIR.*\n {2}.*set TOOLCRIB_HOME/);
  });

  it("that every user may write to is refused with the fix, and works after it", async () => {
    const place = workspace();
    chmodSync(place.home, 0o777);
    for (const args of COMMANDS.slice(0, 4)) {
      expect(await refused(place, args)).toEqual({
        code: "invalid_config",
        message: `${place.home} can be changed by every user of this machine, so its contents may not be yours.`,
        hint: `Check its contents, then run: chmod 700 ${place.home}`,
      });
    }
    chmodSync(place.home, 0o700);
    expect(await place.run(["list"])).toMatchObject({ code: 0 });
  });

  it("with a database, a config, a key or a folder that others may write to, or that is a link to nothing, is refused", async () => {
    for (const name of ["toolcrib.db", "toolcrib.json", "store.key", "secrets", "audit", "auth", "run", "skills"]) {
      const place = workspace();
      const path = join(place.home, name);
      symlinkSync(join(place.dir, "elsewhere"), path);
      expect((await refused(place, ["list"])).hint).toContain(`rm ${path}`);
      rmSync(path);
      if (name.includes(".")) writeFileSync(path, "{}");
      else mkdirSync(path);
      chmodSync(path, 0o777);
      expect((await refused(place, ["list"])).hint).toMatch(new RegExp(`chmod [67]00 ${path}$`));
      expect(readdirSync(place.dir)).toEqual(["home"]);
    }
  });

  it.skipIf(!isRoot)(
    "or part of one that belongs to another user is refused, unless that user called sudo",
    async () => {
      const place = workspace();
      chownSync(place.home, 12_345, 12_345);
      expect((await refused(place, ["list"])).message).toContain("belongs to another user (uid 12345, you are 0)");
      expect(await place.run(["list"], { env: { SUDO_UID: "12345" } })).toMatchObject({ code: 0 });
      chownSync(place.home, 0, 0);
      writeFileSync(join(place.home, "toolcrib.json"), "{}");
      chownSync(join(place.home, "toolcrib.json"), 12_345, 12_345);
      expect((await refused(place, ["list"])).hint).toContain(`chown -R 0 ${place.home}/toolcrib.json`);
    },
  );

  it("that others may read is accepted, and what is secret in it is closed", async () => {
    const place = workspace();
    chmodSync(place.home, 0o755);
    mkdirSync(join(place.home, "secrets"), { mode: 0o755 });
    writeFileSync(join(place.home, "store.key"), "", { mode: 0o644 });
    expect(await place.run(["list"])).toMatchObject({ code: 0 });
    const modes = ["", "secrets", "store.key"].map((name) => statSync(join(place.home, name)).mode & 0o777);
    expect(modes).toEqual([0o755, 0o700, 0o600]);
  });

  it("that is a link to a folder of the user, with a linked config, works", async () => {
    const place = workspace();
    rmSync(place.home, { recursive: true });
    mkdirSync(join(place.dir, "real"), { mode: 0o700 });
    symlinkSync(join(place.dir, "real"), place.home);
    symlinkSync(place.write("dotfile.json", "{}"), join(place.home, "toolcrib.json"));
    expect(await place.run(["list"])).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("error") as string,
    });
  });
});

describe("[trust-18a] a lock file", () => {
  it("that is a link to nothing, or that every user may write to, is refused, and nothing is written through it", async () => {
    const place = workspace();
    place.configure({ memory: bundled("memory") });
    const [lock, elsewhere] = [join(place.dir, "toolcrib.lock"), join(place.dir, "elsewhere.lock")];
    const env = { TOOLCRIB_CONFIG: place.configFile };
    symlinkSync(elsewhere, lock);
    const linked = await place.run(["pins", "approve", "--all"], { env });
    expect(linked).toMatchObject({ code: 1, stderr: expect.stringContaining(`rm ${lock}`) as string });
    await place.run(["list"], { env });
    expect(existsSync(elsewhere)).toBe(false);
    rmSync(lock);
    expect(await place.run(["pins", "diff"], { env })).toMatchObject({ code: 0 });
    chmodSync(lock, 0o666);
    const open = await place.run(["pins", "list"], { env });
    expect(open).toMatchObject({ code: 1, stderr: expect.stringContaining(`chmod o-w ${lock}`) as string });
    chmodSync(lock, 0o644);
    expect(await place.run(["pins", "list"], { env })).toMatchObject({ code: 0 });
  });

  it("between processes that is a link to somewhere is not written through", async () => {
    const place = workspace();
    const victim = place.write("victim", "precious");
    symlinkSync(victim, join(place.home, "installed.json.lock"));
    mkdirSync(join(place.home, "audit"), { mode: 0o700 });
    symlinkSync(victim, join(place.home, "audit", "heads.json.lock"));
    await place.run(["skill", "list"]);
    await place.run(["pins", "reset"]);
    expect(place.read("victim")).toBe("precious");
  });
});
