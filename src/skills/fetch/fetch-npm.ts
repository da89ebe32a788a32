/** Downloads a package with the npm program and unpacks it. None of its scripts run, and nothing is installed. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { explainNpmFailure, runFetchProgram } from "./run-fetch-program.ts";
import { unpackTar } from "./unpack-archive.ts";

interface FetchNpmOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
}

const TIMEOUT_MS = 120_000;

/** Unpacks into `dir`, which must be empty, and resolves with the name of the tarball, which includes the version. */
export async function fetchNpm(spec: string, dir: string, { cwd, env, signal }: FetchNpmOptions): Promise<string> {
  const downloads = join(dir, "download");
  const cache = join(dir, "cache");
  const unpacked = join(dir, "files");
  for (const folder of [downloads, unpacked]) await mkdir(folder);
  const [program, first] = npmProgram();
  const args = [
    ...first,
    "pack",
    "--ignore-scripts",
    "--loglevel=error",
    "--no-update-notifier",
    "--no-progress",
    "--logs-max=0",
    "--workspaces=false",
    `--cache=${cache}`,
    `--pack-destination=${downloads}`,
    "--",
    spec,
  ];
  // In the user's folder, because a project's .npmrc says where its scope's registry is.
  await runFetchProgram(program, args, {
    cwd,
    env,
    timeoutMs: TIMEOUT_MS,
    signal,
    task: `Downloading npm:${spec}`,
    // The address of a registry may hold a password.
    mask: (text) => text.replace(/(:\/\/)[^/\s@]*@/g, "$1"),
    explain: explainNpmFailure,
  });
  const [tarball, ...more] = await readdir(downloads);
  if (tarball === undefined || more.length > 0) {
    throw new ToolcribError("not_found", `npm returned no package for ${JSON.stringify(spec)}.`);
  }
  await unpackTar(join(downloads, tarball), unpacked, { signal });
  for (const folder of [downloads, cache]) await rm(folder, { recursive: true, force: true });
  return tarball;
}

/** Windows starts `npm.cmd` only through a shell, so there npm's own script is run instead. */
function npmProgram(): [string, string[]] {
  if (process.platform !== "win32") return ["npm", []];
  return [process.execPath, [join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js")]];
}

// Package specs: `npm:name`, `npm:@scope/name@^1.2`, `@scope/name`.

const PACKAGE_NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i;
/** A version, range or tag. Addresses, files and aliases have a colon or a slash. */
const VERSION_RANGE = /^[0-9A-Za-z.^~<>=|*+ -]{1,100}$/;

export function isNpmSource(source: string): boolean {
  return /^npm:/i.test(source) || /^@[^/\\]+\/[^/\\]+$/.test(source);
}

/** The spec as npm takes it. */
export function parseNpmSource(source: string): string {
  const spec = source.replace(/^npm:/i, "");
  const at = spec.indexOf("@", 1);
  const name = at === -1 ? spec : spec.slice(0, at);
  const range = at === -1 ? undefined : spec.slice(at + 1);
  if (!PACKAGE_NAME.test(name) || name.length > 214) {
    throw invalidNpmSource(`${JSON.stringify(name.slice(0, 100))} is not the name of an npm package.`);
  }
  if (range !== undefined && !VERSION_RANGE.test(range)) {
    throw invalidNpmSource(`The text after ${name}@ is not a version, range or tag.`);
  }
  return spec;
}

function invalidNpmSource(message: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message, {
    hint: "Write npm:name or npm:@scope/name, with @version if needed.",
  });
}
