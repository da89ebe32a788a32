/** A real PostgreSQL for tests: a cluster of its own in a temporary folder, reached through a socket there. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";

const BINARIES = "/usr/lib/postgresql";
/** In the address, so that tests can look for it where it must not be. */
export const PASSWORD = "correct-horse-battery";

export interface Postgres {
  /** A URL whose tables nobody else has: each is a schema of its own. */
  freshUrl(): Promise<string>;
  /** For what tests do behind the store's back. */
  connect(url: string): Promise<pg.Client>;
  /** Stops every process of it in the middle of whatever it does, or lets them go on. */
  freeze(frozen: boolean): void;
  stop(): Promise<void>;
}

/** Why there can be none here, or undefined. */
export function missingPostgres(): string | undefined {
  if (binaries() === undefined) return `no initdb below ${BINARIES}`;
  if (process.getuid?.() === 0 && owner() === undefined) return "root may not run it, and there is no user postgres";
  return undefined;
}

export async function startPostgres(): Promise<Postgres> {
  const bin = binaries() ?? "";
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-pg-"));
  // PostgreSQL refuses to run as root.
  const user = process.getuid?.() === 0 ? owner() : undefined;
  writeFileSync(join(dir, "password"), PASSWORD);
  if (user !== undefined) for (const path of [dir, join(dir, "password")]) chownSync(path, user.uid, user.gid);
  const cluster = join(dir, "cluster");
  const made = spawnSync(
    join(bin, "initdb"),
    [
      "-D",
      cluster,
      "-U",
      "toolcrib",
      "--pwfile",
      join(dir, "password"),
      "--auth=scram-sha-256",
      "--encoding=UTF8",
    ].concat(["--locale=C", "--no-sync"]),
    { ...user, cwd: dir, encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const settings = ["fsync=off", "full_page_writes=off", "listen_addresses=", `unix_socket_directories=${dir}`];
  const child = spawn(join(bin, "postgres"), ["-D", cluster, ...settings.flatMap((each) => ["-c", each])], {
    ...user,
    cwd: dir,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const url = `postgres://toolcrib:${PASSWORD}@localhost/postgres?host=${encodeURIComponent(dir)}`;
  const admin = await firstConnection(child, url);
  let schemas = 0;
  return {
    async freshUrl() {
      const schema = `test_${++schemas}`;
      await admin.query(`create schema ${schema}`);
      return `${url}&options=${encodeURIComponent(`-csearch_path=${schema}`)}`;
    },
    connect,
    freeze(frozen) {
      for (const pid of [child.pid, ...childrenOf(child.pid)]) {
        try {
          if (pid !== undefined) process.kill(pid, frozen ? "SIGSTOP" : "SIGCONT");
        } catch {
          // A process of a connection that has ended meanwhile.
        }
      }
    },
    async stop() {
      await admin.end();
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // Without waiting for clients.
      child.kill("SIGINT");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function firstConnection(child: ChildProcess, url: string): Promise<pg.Client> {
  let log = "";
  child.stderr?.on("data", (chunk) => (log += String(chunk)));
  for (let attempt = 0; attempt < 200; attempt++) {
    if (child.exitCode !== null) break;
    try {
      return await connect(url);
    } catch {
      await delay(50);
    }
  }
  child.kill("SIGKILL");
  throw new Error(`PostgreSQL does not start: ${log}`);
}

function childrenOf(pid: number | undefined): number[] {
  const found = spawnSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return found.stdout
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(Number);
}

function binaries(): string | undefined {
  if (!existsSync(BINARIES)) return undefined;
  return readdirSync(BINARIES)
    .map((version) => join(BINARIES, version, "bin"))
    .findLast((bin) => existsSync(join(bin, "initdb")) && existsSync(join(bin, "postgres")));
}

function owner(): { uid: number; gid: number } | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((each) => each.startsWith("postgres:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}
