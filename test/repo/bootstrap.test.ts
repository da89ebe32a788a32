import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUNDLED, sourceHash } from "../../scripts/bootstrap/build.mjs";
import { dependencyHash, isStamped, writeStamp } from "../../scripts/bootstrap/dependencies.mjs";
import { withLock } from "../../scripts/bootstrap/lock.mjs";
import { findNode, isAtLeast, isNewEnough, nodePackageFor } from "../../scripts/bootstrap/node.mjs";

const repo = join(import.meta.dirname, "..", "..");
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "toolcrib-bootstrap-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

function writePackage(manifest: object, lock: object = {}): void {
  const base = { name: "sample", version: "1.0.0" };
  write("package.json", JSON.stringify({ ...base, ...manifest }));
  write("package-lock.json", JSON.stringify({ ...base, lockfileVersion: 3, packages: { "": base }, ...lock }));
}

describe("the choice of Node", () => {
  it("[spine-02a] compares versions part by part", () => {
    expect(isAtLeast("v22.14.0", "22.14.0")).toBe(true);
    expect(isAtLeast("v24.0.0", "22.14.0")).toBe(true);
    expect(isAtLeast("v22.9.1", "22.14.0")).toBe(false);
    expect(isAtLeast("v20.20.2", "22.14.0")).toBe(false);
    expect(isAtLeast("v23.0.0-nightly", "22.14.0")).toBe(true);
  });

  it("[spine-02a] wants a Node that runs TypeScript by itself", () => {
    const versions = ["v18.20.0", "v20.20.2", "v22.14.0", "v22.18.0", "v23.5.0", "v23.6.0", "v24.0.0", "v26.1.0"];
    expect(versions.filter((version) => isNewEnough(version))).toEqual(["v22.18.0", "v23.6.0", "v24.0.0", "v26.1.0"]);
  });

  it("[spine-02a] keeps a running Node that is new enough, wherever it runs", async () => {
    const node = await findNode({ root, say: () => {}, version: "v22.18.0", platform: "sunos", arch: "mips" });
    expect(node).toEqual({ path: process.execPath, version: "v22.18.0" });
    expect(existsSync(join(root, ".dev"))).toBe(false);
  });

  it("[spine-02a] uses a Node that was fetched before, without npm", async () => {
    const wanted = nodePackageFor("linux", "x64");
    if (wanted === undefined) throw new Error("no package for linux-x64");
    const record = { packages: { [`node_modules/${wanted.name}`]: { version: wanted.version } } };
    write(".dev/node/node_modules/.package-lock.json", JSON.stringify(record));
    write(`.dev/node/node_modules/${wanted.name}/bin/node`, "");
    const said: string[] = [];
    const node = await findNode({
      root,
      say: (line) => said.push(line),
      version: "v20.0.0",
      platform: "linux",
      arch: "x64",
    });
    expect(node).toEqual({
      path: join(root, ".dev/node/node_modules", wanted.name, "bin/node"),
      version: wanted.version,
    });
    expect(said).toEqual([]);
  });

  it("[spine-02a] says what to install where no packaged Node exists", async () => {
    const found = findNode({ root, say: () => {}, version: "v20.0.0", platform: "darwin", arch: "arm64" });
    await expect(found).rejects.toThrow(/darwin-arm64: install Node 22\.18 or newer/);
  });
});

describe("the stamps", () => {
  it("[spine-02a] changes with the lock file and the dependencies, and with nothing else in package.json", () => {
    writePackage({ dependencies: { zod: "1" } });
    const hash = dependencyHash(root);
    writePackage({ dependencies: { zod: "1" }, scripts: { test: "x" }, keywords: ["y"] });
    expect(dependencyHash(root)).toBe(hash);
    writePackage({ dependencies: { zod: "2" } });
    expect(dependencyHash(root)).not.toBe(hash);
    writePackage({ dependencies: { zod: "1" } }, { packages: { "node_modules/zod": { version: "2" } } });
    expect(dependencyHash(root)).not.toBe(hash);
  });

  it("[spine-02a] holds until the lock file changes or node_modules is gone", () => {
    writePackage({});
    expect(isStamped(root)).toBe(false);
    writeStamp(root);
    expect(isStamped(root)).toBe(true);
    writePackage({}, { packages: { "node_modules/zod": { version: "2" } } });
    expect(isStamped(root)).toBe(false);
    writePackage({});
    expect(isStamped(root)).toBe(true);
    rmSync(join(root, "node_modules"), { recursive: true });
    expect(isStamped(root)).toBe(false);
  });

  it("sees a source file that is changed, renamed or added, and another version of what is bundled", () => {
    const packages = ["typescript", "rolldown", ...BUNDLED].map((name) => `node_modules/${name}/package.json`);
    for (const name of ["tsconfig.json", "tsconfig.build.json", "scripts/bootstrap/bundle.mjs", ...packages]) {
      write(name, "{}");
    }
    write("src/a/one.ts", "1");
    const hashes = [sourceHash(root)];
    expect(sourceHash(root)).toBe(hashes[0]);
    const changes = { "src/a/one.ts": "2", "src/a/two.ts": "", "node_modules/zod/package.json": '{"version": "2"}' };
    for (const [name, content] of Object.entries(changes)) {
      write(name, content);
      hashes.push(sourceHash(root));
    }
    expect(new Set(hashes).size).toBe(4);
  });
});

describe("the lock", () => {
  it("lets one task in at a time", async () => {
    let inside = 0;
    let most = 0;
    const task = () =>
      withLock(root, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
      });
    await Promise.all([task(), task(), task()]);
    expect(most).toBe(1);
    expect(existsSync(join(root, ".dev", "lock"))).toBe(false);
  });

  it("is released after a failure, and taken from an owner that is dead", async () => {
    await expect(withLock(root, () => Promise.reject(new Error("task failed")))).rejects.toThrow("task failed");
    const dead = spawn(process.execPath, ["-e", ""]);
    await once(dead, "exit");
    write(".dev/lock/owner", String(dead.pid));
    await expect(withLock(root, async () => "in")).resolves.toBe("in");
  });
});

/** A Node on this machine that is too old for Toolcrib, if there is one. */
function findOldNode(): string | undefined {
  return ["/usr/bin/node", "/usr/local/bin/node"].find((path) => {
    try {
      const version = execFileSync(path, ["--version"], { encoding: "utf8" }).trim();
      return isAtLeast(version, "18.17.0") && !isNewEnough(version);
    } catch {
      return false;
    }
  });
}

describe("scripts/dev.mjs", () => {
  /** The real bootstrap around a repository without dependencies, whose `generate` task is the given program. */
  function sampleRepository(program: string): void {
    writePackage({});
    cpSync(join(repo, "scripts", "dev.mjs"), join(root, "scripts", "dev.mjs"));
    cpSync(join(repo, "scripts", "bootstrap"), join(root, "scripts", "bootstrap"), { recursive: true });
    write("scripts/generate.ts", program);
    const fetched = join(repo, ".dev", "node");
    if (existsSync(fetched)) {
      mkdirSync(join(root, ".dev"));
      symlinkSync(fetched, join(root, ".dev", "node"));
    }
  }

  function start(node: string, task: string): ChildProcess {
    return spawn(node, [join(root, "scripts", "dev.mjs"), task], { stdio: ["ignore", "pipe", "pipe"] });
  }

  async function run(node: string, task: string): Promise<{ code: unknown; out: string; err: string }> {
    const child = start(node, task);
    if (child.stdout === null || child.stderr === null) throw new Error("the child has no pipes");
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code, out, err };
  }

  it("[spine-02a] installs once, then goes straight to the task, and passes its exit code on", async () => {
    sampleRepository("process.stdout.write(process.version); process.exitCode = 7;");
    const first = await run(process.execPath, "generate");
    expect(first).toMatchObject({ code: 7, out: process.version });
    expect(first.err).toMatch(/npm ci/);
    expect(await run(process.execPath, "generate")).toEqual({ code: 7, out: process.version, err: "" });
  });

  const oldNode = findOldNode();
  // The time allows for fetching a Node, where the repository's own was new enough all along.
  it.skipIf(oldNode === undefined)(
    "[spine-02a] started by a Node that is too old, runs the task under a new one",
    { timeout: 120_000 },
    async () => {
      sampleRepository(
        'const version: string = process.version; process.stdout.write(version + " " + process.execPath);',
      );
      const { code, out } = await run(oldNode ?? "", "generate");
      expect(code).toBe(0);
      expect(isNewEnough(out.split(" ")[0] ?? "")).toBe(true);
      expect(out).toContain(join(".dev", "node"));
    },
  );

  it("passes a signal on and waits for the task to end", async () => {
    sampleRepository(
      'process.on("SIGTERM", () => process.exit(9)); setInterval(() => {}, 1000); console.log("ready");',
    );
    writeStamp(root);
    const child = start(process.execPath, "generate");
    if (child.stdout === null) throw new Error("the child has no stdout");
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    const [code] = await once(child, "close");
    expect(code).toBe(9);
  });

  it("refuses an unknown task, and has nothing to prepare without the compiler", async () => {
    sampleRepository("");
    expect(await run(process.execPath, "nonsense")).toMatchObject({
      code: 2,
      err: expect.stringContaining("Tasks: start"),
    });
    expect(await run(process.execPath, "prepare")).toEqual({ code: 0, out: "", err: "" });
    expect(existsSync(join(root, "node_modules"))).toBe(false);
  });
});
