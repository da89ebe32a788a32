/** Puts the peers into a scratch folder beside the checkout's other downloads; they are never a dependency. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export interface Installed {
  readonly name: string;
  readonly version: string;
  /** The script that the package's command runs. */
  readonly bin: string;
}

export interface Installation {
  readonly installed: readonly Installed[];
  /** By package. */
  readonly missing: Readonly<Record<string, string>>;
}

const FOLDER = resolve(import.meta.dirname, "../../.dev/bench-peers");
const PATIENCE_MS = 180_000;

export function installPeers(names: readonly string[], say: (line: string) => void): Installation {
  mkdirSync(FOLDER, { recursive: true });
  const manifest = join(FOLDER, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const installed: Installed[] = [];
  const missing: Record<string, string> = {};
  for (const name of names) {
    // One by one: one that cannot be had must not take the others with it.
    const problem = installedPackage(name) === undefined ? install(name, say) : undefined;
    const found = installedPackage(name);
    if (found === undefined) missing[name] = problem ?? "it has no command";
    else installed.push(found);
  }
  return { installed, missing };
}

function install(name: string, say: (line: string) => void): string | undefined {
  say(`installing the peer ${name} …`);
  const npm = join(dirname(process.execPath), "npm");
  const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", name];
  const result = spawnSync(existsSync(npm) ? npm : "npm", args, {
    cwd: FOLDER,
    encoding: "utf8",
    timeout: PATIENCE_MS,
    env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` },
  });
  if (result.status === 0) return undefined;
  const text = result.error?.message ?? result.stderr;
  return text.split("\n").find((line) => line.startsWith("npm error")) ?? (text.trim().slice(0, 200) || "npm failed");
}

function installedPackage(name: string): Installed | undefined {
  const folder = join(FOLDER, "node_modules", name);
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) return undefined;
  const { version, bin }: { version: string; bin?: string | Record<string, string> } = JSON.parse(
    readFileSync(manifest, "utf8"),
  );
  const script = typeof bin === "string" ? bin : (bin?.[name] ?? Object.values(bin ?? {})[0]);
  return script === undefined ? undefined : { name, version, bin: join(folder, script) };
}
