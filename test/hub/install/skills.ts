/** Skills for tests, with servers that really run, and what stands in a home. */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";

const MODULES = resolve(import.meta.dirname, "../../../node_modules/@modelcontextprotocol");

export const FILES_SERVER = join(MODULES, "server-filesystem/dist/index.js");
export const MEMORY_SERVER = join(MODULES, "server-memory/dist/index.js");

/** A filesystem server with a required folder. */
export const filesServer = (name = "files"): string => `
  - name: ${name}
    description: Reads and writes the notes.
    config-template:
      command: ${JSON.stringify(process.execPath)}
      args: [${JSON.stringify(FILES_SERVER)}, "\${ROOT}"]
    parameters:
      ROOT: {description: Folder of the notes, required: true, example: /srv/notes}`;

/** A memory server that is given a token, which it does not need. */
export const memoryServer = (name = "recall"): string => `
  - name: ${name}
    description: Remembers facts.
    config-template:
      command: ${JSON.stringify(process.execPath)}
      args: [${JSON.stringify(MEMORY_SERVER)}]
      env: {MEMORY_FILE_PATH: "\${MEMORY}", RECALL_TOKEN: "\${RECALL_TOKEN}"}
    parameters:
      MEMORY: {description: File of the facts, default: "\${CWD}/memory.jsonl"}
      RECALL_TOKEN: {description: Token of the service, sensitive: true}`;

/** `path` ends with the skill's name. */
export function writeSkill(dir: string, path: string, servers: readonly string[] = [], body = "# Use it"): string {
  const folder = join(dir, path);
  const name = basename(path);
  const block = servers.length === 0 ? "" : `requires-mcp-servers:${servers.join("")}\n`;
  put(join(folder, "SKILL.md"), `---\nname: ${name}\ndescription: The skill ${name}.\n${block}---\n\n${body}\n`);
  put(join(folder, "scripts/help.sh"), "#!/bin/sh\necho help\n");
  return folder;
}

export function put(file: string, text: string, mode = 0o644): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
  return file;
}

/** Every path below a folder with its mode and a digest of its contents; folders too. */
export function treeOf(dir: string): Record<string, string> {
  // What stands beside an open database comes and goes with it.
  const paths = (readdirSync(dir, { recursive: true }) as string[]).filter((path) => !/\.db-(?:wal|shm)$/.test(path));
  return Object.fromEntries(
    paths.toSorted().map((path) => {
      const full = join(dir, path);
      const stats = lstatSync(full);
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isSymbolicLink()) return [path, `link ${readlinkSync(full)}`];
      if (stats.isDirectory()) return [path, `folder ${mode}`];
      if (path.endsWith("toolcrib.db")) return [path, `${mode} ${skillsIn(full)}`];
      return [path, `${mode} ${createHash("sha256").update(readFileSync(full)).digest("hex").slice(0, 16)}`];
    }),
  );
}

/** A database that was changed and changed back has other bytes. */
function skillsIn(file: string): string {
  const database = new Database(file);
  try {
    return JSON.stringify(database.prepare("select id, manifest from skills order by id").all());
  } finally {
    database.close();
  }
}
