/**
 * A real podman for tests, with a storage folder of its own, and a base image that is made from files of this machine:
 * no image registry is needed, and nothing stays behind. Node itself is mounted, because it is large.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ContainersConfig } from "../../src/model/server-spec.ts";

export interface TestEngine {
  /** As a config would hold it. */
  readonly containers: ContainersConfig;
  readonly base: string;
  /** Output of the engine; throws if it fails. */
  run(...args: readonly string[]): string;
  /** All containers with this label, running or not. */
  named(label: string): string[];
  stop(): void;
}

const BASE = "localhost/toolcrib-test/node:1";
/** What podman needs on machines with few powers, such as those of a CI. */
const FLAGS = ["--runtime", "runc", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
const NODE = "/usr/local/bin/node";

/** Why no container can be run here, or undefined. */
export function missingPodman(): string | undefined {
  if (process.platform !== "linux") return `podman needs Linux, and this is ${process.platform}`;
  const asked = spawnSync("podman", ["info", "--format", "{{.Host.OCIRuntime.Name}}"], { encoding: "utf8" });
  if (asked.error !== undefined) return "podman is not installed";
  if (asked.status !== 0) return `podman does not work: ${asked.stderr.trim().split("\n").at(-1)}`;
  if (!existsSync("/usr/sbin/runc") && !existsSync("/usr/bin/runc")) return "runc is not installed";
  return undefined;
}

export function startEngine(): TestEngine {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-podman-"));
  const program = join(dir, "podman");
  const storage = join(dir, "storage");
  writeFileSync(program, `#!/bin/sh\nexec podman --root ${storage} --runroot ${join(dir, "run")} "$@"\n`);
  chmodSync(program, 0o755);
  const run = (...args: readonly string[]): string => execFileSync(program, args, { encoding: "utf8", stdio: "pipe" });
  importBase(dir, run);
  return {
    containers: { program, flags: [...FLAGS, "--volume", `${process.execPath}:${NODE}:ro`], base: BASE },
    base: BASE,
    run,
    named: (label) =>
      run("ps", "--all", "--filter", `label=${label}`, "--format", "{{.Names}}")
        .split("\n")
        .filter((name) => name !== ""),
    stop() {
      spawnSync(program, ["rm", "-f", "-t", "0", "--all"]);
      // podman keeps its storage mounted on itself.
      spawnSync("umount", ["-l", join(storage, "overlay")]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A shell, the libraries that it and Node are linked with, and a place for Node. */
function importBase(dir: string, run: TestEngine["run"]): void {
  const root = join(dir, "base");
  const shell = existsSync("/bin/dash") ? "/bin/dash" : "/bin/sh";
  place(root, shell, "/bin/sh");
  mkdirSync(join(root, dirname(NODE)), { recursive: true });
  writeFileSync(join(root, NODE), "");
  for (const library of librariesOf(process.execPath, shell)) place(root, library, library);
  mkdirSync(join(root, "tmp"));
  // runc gives a tmpfs the mode that the folder has in the image.
  chmodSync(join(root, "tmp"), 0o1777);
  const archive = join(dir, "base.tar");
  execFileSync("tar", ["-C", root, "-cf", archive, "."]);
  rmSync(root, { recursive: true });
  run("import", "--quiet", "--change", "ENV PATH=/usr/local/bin:/bin", archive, BASE);
  rmSync(archive);
}

function place(root: string, from: string, to: string): void {
  const target = join(root, to);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(from, target);
  chmodSync(target, 0o755);
}

function librariesOf(...programs: readonly string[]): Set<string> {
  const listed = execFileSync("ldd", programs, { encoding: "utf8" });
  return new Set([...listed.matchAll(/(?:=> |^\s+)(\/[^\s:]+) \(0x/gm)].map(([, path = ""]) => path));
}
