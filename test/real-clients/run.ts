/**
 * `npm run test:clients [id…]`: installs clients from the registry into a cache outside the repository, and runs each with a scripted
 * model in a network of its own that has loopback only. Not part of `npm test`: it downloads about a gigabyte once, and what it
 * proves changes with the clients.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { REAL_CLIENTS, type RealClient } from "./clients.ts";
import { type InstalledClient, tryClient } from "./suite.ts";

const CACHE = process.env["TOOLCRIB_CLIENT_CACHE"] ?? join(homedir(), ".cache", "toolcrib-clients");
/** Says that this process is inside the network without a way out. */
const INSIDE = "TOOLCRIB_CLIENTS_INSIDE";
const CLIENTS_DOC = join(import.meta.dirname, "..", "..", "docs", "clients.md");

async function main(): Promise<number> {
  const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
  const chosen = REAL_CLIENTS.filter(({ id }) => wanted.length === 0 || wanted.includes(id));
  if (chosen.length === 0) {
    console.error(`No such client. Known: ${REAL_CLIENTS.map(({ id }) => id).join(", ")}`);
    return 2;
  }
  if (process.env[INSIDE] === undefined) return enterNetwork(chosen);
  const lines: string[] = [];
  let failed = 0;
  for (const client of chosen.flatMap((each) => installed(each) ?? [])) {
    const { version, steps } = await tryClient(client);
    const problems = steps.filter(({ problem }) => problem !== undefined);
    for (const { step, problem } of steps) {
      console.log(`${problem === undefined ? "ok    " : "FAILED"} ${client.id} ${version}: ${step}`);
      if (problem !== undefined) console.log(`       ${problem.replaceAll("\n", "\n       ")}`);
    }
    failed += problems.length;
    const outcome = problems.length === 0 ? "all steps" : `failed: ${problems.map(({ step }) => step).join(", ")}`;
    lines.push(`| \`${client.id}\` | ${version} | ${new Date().toISOString().slice(0, 10)} | ${outcome} |`);
  }
  if (process.argv.includes("--docs")) writeRuns(lines);
  console.log(failed === 0 ? "All clients passed." : `${failed} steps failed.`);
  return failed === 0 ? 0 : 1;
}

/** Installs what is missing while there is a network, then runs itself again without one. */
async function enterNetwork(clients: readonly RealClient[]): Promise<number> {
  for (const client of clients)
    if (installed(client) === undefined || process.argv.includes("--update")) install(client);
  const missing = clients.filter((client) => installed(client) === undefined).map(({ id }) => id);
  if (missing.length > 0) {
    console.error(`Could not be installed: ${missing.join(", ")}`);
    return 1;
  }
  const inside = ["-c", 'ip link set lo up && exec "$0" "$@"', process.execPath, ...process.argv.slice(1)];
  const child = spawn("unshare", ["--user", "--map-root-user", "--net", "sh", ...inside], {
    stdio: "inherit",
    env: { ...process.env, [INSIDE]: "1" },
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

function folderOf({ id }: RealClient): string {
  return join(CACHE, id);
}

function installed(client: RealClient): InstalledClient | undefined {
  const folder = folderOf(client);
  const program = join(folder, "node_modules", client.program);
  const manifest = join(folder, "node_modules", client.package, "package.json");
  const packed = `${program}.br`;
  if (!existsSync(program) && existsSync(packed)) {
    writeFileSync(program, brotliDecompressSync(readFileSync(packed)), { mode: 0o755 });
  }
  if (!existsSync(program) || !existsSync(manifest)) return undefined;
  // A package's own manifest has a version.
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  return { ...client, program, version };
}

function install(client: RealClient): void {
  const folder = folderOf(client);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  console.log(`Installing ${client.package} into ${folder}`);
  spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", `${client.package}@latest`], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** Rows of clients that were not run stay. */
function writeRuns(rows: readonly string[]): void {
  const [begin, end] = ["<!-- runs -->\n", "<!-- /runs -->"];
  const doc = readFileSync(CLIENTS_DOC, "utf8");
  const from = doc.indexOf(begin) + begin.length;
  const kept = doc.slice(from, doc.indexOf(end)).trimEnd().split("\n");
  const idOf = (row: string): string => row.split("|")[1]?.trim() ?? "";
  const renewed = new Map([...kept, ...rows].map((row) => [idOf(row), row]));
  writeFileSync(
    CLIENTS_DOC,
    `${doc.slice(0, from)}${[...renewed.values()].join("\n")}\n${doc.slice(doc.indexOf(end))}`,
  );
}

process.exitCode = await main();
