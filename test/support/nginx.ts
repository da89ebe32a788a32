/** nginx: the one that is installed, or Debian's, unpacked into .dev/ without being installed. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const DEV = resolve(import.meta.dirname, "../../.dev");
const DOWNLOAD_MS = 60_000;

/** The path of the program, or why there is none. */
export function findNginx(): { readonly path: string } | { readonly missing: string } {
  const unpacked = join(DEV, "nginx", "usr/sbin/nginx");
  for (const path of ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx", unpacked])
    if (runs(path)) return { path };
  if (!existsSync("/usr/bin/apt-get")) return { missing: "nginx is not installed" };
  mkdirSync(DEV, { recursive: true });
  const dir = mkdtempSync(join(DEV, "nginx-"));
  try {
    const fetched = spawnSync("apt-get", ["download", "nginx"], { cwd: dir, timeout: DOWNLOAD_MS, encoding: "utf8" });
    const [file] = readdirSync(dir).filter((name) => name.endsWith(".deb"));
    const isUnpacked = file !== undefined && spawnSync("dpkg", ["-x", file, "out"], { cwd: dir }).status === 0;
    if (!isUnpacked) return { missing: `nginx is not installed and not downloaded: ${lastLine(fetched.stderr)}` };
    if (!existsSync(join(DEV, "nginx"))) renameSync(join(dir, "out"), join(DEV, "nginx"));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return runs(unpacked) ? { path: unpacked } : { missing: "Debian's nginx does not run here: it lacks a library" };
}

function runs(path: string): boolean {
  return spawnSync(path, ["-v"]).status === 0;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
