/**
 * The real servers that most tests run, each made into a few files: the suite starts them a thousand times, and most of a
 * start is Node looking for hundreds of modules. They are kept in .dev until a package changes.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import { hashFiles } from "../../scripts/bootstrap/hash-files.mjs";

const root = resolve(import.meta.dirname, "../..");
const NAMES = ["everything", "filesystem", "memory"] as const;
const PREFIX = "servers-";

const packageOf = (name: string): string => join("node_modules", "@modelcontextprotocol", `server-${name}`);
const kept = join(
  root,
  ".dev",
  `${PREFIX}${hashFiles(root, ["package-lock.json", relative(root, import.meta.filename)]).slice(0, 12)}`,
);

/** Below a `node_modules` too: Toolcrib tells a server's package by its path. */
export function serverFile(name: (typeof NAMES)[number]): string {
  return join(kept, packageOf(name), "dist", "index.js");
}

/** Called before a run. */
export default async function setup(): Promise<void> {
  if (existsSync(kept)) return;
  const fresh = `${kept}.${process.pid}`;
  for (const name of NAMES) await bundle(join(root, packageOf(name)), join(fresh, packageOf(name)));
  for (const old of readdirSync(join(root, ".dev")))
    if (old.startsWith(PREFIX) && !old.includes(".")) rmSync(join(root, ".dev", old), { recursive: true, force: true });
  try {
    renameSync(fresh, kept);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    // Another run was first.
    if (!existsSync(kept)) throw error;
  }
}

async function bundle(from: string, to: string): Promise<void> {
  mkdirSync(to, { recursive: true });
  cpSync(join(from, "package.json"), join(to, "package.json"));
  // The documents of server-everything are looked for beside the folder of the module that reads them.
  const documents = join(from, "dist", "docs");
  if (existsSync(documents)) cpSync(documents, join(to, "docs"), { recursive: true });
  const made = await rolldown({ input: join(from, "dist", "index.js"), platform: "node", logLevel: "silent" });
  await made.write({ dir: join(to, "dist"), format: "esm" });
  await made.close();
}
