/** The image that a server runs in: the one that its entry names, or one made for its npm package. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, posix } from "node:path";
import { endsWithin } from "../../base/async.ts";
import { withLock } from "../../files/lock-file.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { type ProcessTable, systemProcessTable } from "../stdio/process-table.ts";
import { notSent } from "../wire.ts";
import { type ContainerEngine, lastLines, npmEnvironment, runInGroup } from "./container-engine.ts";
import type { SandboxDeps, SandboxedProgram, SandboxSettings } from "./sandbox-settings.ts";

const DEFAULT_BASE = "docker.io/library/node:24-slim";

/** A large image over a slow line; after that something is wrong. */
const PULL_TIMEOUT_MS = 10 * 60_000;

export interface ServerImage {
  readonly image: string;
  /** Replaces the image's own entrypoint; undefined keeps it. */
  readonly entrypoint: string | undefined;
  readonly args: readonly string[];
}

interface ImageRequest {
  readonly program: Pick<SandboxedProgram, "serverId" | "command" | "args">;
  readonly settings: Pick<SandboxSettings, "image">;
  readonly engine: ContainerEngine;
  readonly deps: SandboxDeps;
  readonly signal: AbortSignal;
}

interface SharedFlight {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  waiters: number;
}

/** Work that is done once for several callers. It goes on as long as one of them waits for it. */
export class CancellableSingleFlight {
  readonly #inFlight = new Map<string, SharedFlight>();

  /**
   * Starts `work` unless the same is in progress. Rejects with `cancelled` when the signal aborts; the last one who leaves
   * ends the work, and waits until it has.
   */
  async join(key: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw cancelled();
    const joined = this.#inFlight.get(key) ?? this.#start(key, work);
    joined.waiters++;
    try {
      if (await endsWithin(joined.done, { signal })) return;
    } finally {
      joined.waiters--;
    }
    if (joined.waiters === 0) {
      // A new caller starts again.
      if (this.#inFlight.get(key) === joined) this.#inFlight.delete(key);
      joined.controller.abort();
      await joined.done.catch(() => {});
    }
    throw cancelled();
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<void>): SharedFlight {
    const controller = new AbortController();
    const done = work(controller.signal).finally(() => {
      if (this.#inFlight.get(key) === started) this.#inFlight.delete(key);
    });
    const started: SharedFlight = { done, controller, waiters: 0 };
    this.#inFlight.set(key, started);
    // All waiters may have left before it fails.
    done.catch(() => {});
    return started;
  }
}
// For the whole process: two servers of one image, and a second attempt while the first is still at work.
const inProgress = new CancellableSingleFlight();

/** Brings the image to this machine if it is not there yet, which may take minutes. */
export async function imageFor(request: ImageRequest): Promise<ServerImage> {
  const { program, settings, engine, deps, signal } = request;
  const { command, args } = program;
  if (settings.image !== undefined) {
    checkName(settings.image);
    await ensureImage(settings.image, request);
    return { image: settings.image, entrypoint: command === "" ? undefined : command, args };
  }
  const launch = npmLaunch(command, args);
  if (launch === undefined) throw noImage(command);
  const base = deps.containers.base ?? DEFAULT_BASE;
  checkName(base);
  const baseId = await ensureImage(base, request);
  const image = npmImageTag(launch, `${base} ${baseId}`, engine.arch);
  if ((await imageId(image, engine, signal)) === undefined) {
    const { serverId } = program;
    const make = (stop: AbortSignal): Promise<void> =>
      makeNpmImage({ launch, image, base, engine, deps, serverId, signal: stop });
    await inProgress.join(`${engine.program} ${image}`, make, signal);
  }
  return { image, entrypoint: undefined, args: launch.args };
}

/** A name that begins with a dash would be an option. */
function checkName(image: string): void {
  if (/^[A-Za-z0-9][\w./:@-]*$/.test(image)) return;
  const hint = "Write it as in host.example.com/folder/name:tag.";
  throw notSent("invalid_config", `${JSON.stringify(image)} is not the name of an image.`, hint);
}

async function ensureImage(image: string, request: ImageRequest): Promise<string> {
  const { engine, signal } = request;
  const known = await imageId(image, engine, signal);
  if (known !== undefined) return known;
  await inProgress.join(`${engine.program} ${image}`, (stop) => pull(image, request, stop), signal);
  return (await imageId(image, engine, signal)) ?? image;
}

async function pull(image: string, { program, engine, deps }: ImageRequest, signal: AbortSignal): Promise<void> {
  deps.warn(`The image ${image} is being fetched with ${engine.program}.`);
  const holder = { home: deps.home, serverId: program.serverId };
  const { code, stderr } = await engine.run(["pull", "--quiet", image], { timeoutMs: PULL_TIMEOUT_MS, signal, holder });
  if (code === 0) return;
  throw imageFailed(
    `The image ${image} could not be fetched: ${lastLines(stderr, 3)}`,
    `Check its name, and that \`${engine.program} pull ${image}\` works.`,
  );
}

/** undefined if this machine does not have it. */
async function imageId(image: string, engine: ContainerEngine, signal?: AbortSignal): Promise<string | undefined> {
  const { code, stdout, stderr } = await engine.run(["image", "inspect", "--format", "{{.Id}}", image], { signal });
  if (code === 0) return stdout.trim();
  if (/no such|not known|not found|unable to find/i.test(stderr)) return undefined;
  throw imageFailed(`${engine.program} cannot be asked for images: ${lastLines(stderr, 3)}`);
}

function noImage(command: string): ToolcribError {
  const what =
    command === "" ? "It has neither a command nor an image" : `No image is known for ${JSON.stringify(command)}`;
  return notSent(
    "invalid_config",
    `${what}: a container has only what its image has.`,
    'Give `sandbox.image`; or start an npm package at one version, as in npx -y package@1.2.3; or use `sandbox: "bubblewrap"`, which runs the programs of this machine.',
  );
}

interface NpmLaunch {
  /** Such as `@scope/name`. */
  readonly name: string;
  /** One exact version. */
  readonly version: string;
  /** The program of the package; its only one, or the one of its own name, if absent. */
  readonly bin: string | undefined;
  /** For the server itself. */
  readonly args: readonly string[];
  /** npm, beside the npx that was named. */
  readonly npm: string;
}

const EXACT = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
// A name that begins with a dash would be an option of npm.
const PACKAGE = /^((?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*)(?:@(.+))?$/i;

/** undefined for a command that is not npm's. Throws `invalid_config` for a package without an exact version. */
export function npmLaunch(command: string, args: readonly string[]): NpmLaunch | undefined {
  const program = basename(command).replace(/\.(?:cmd|exe)$/i, "");
  const npm = basename(command) === command ? "npm" : join(dirname(command), "npm");
  if (program === "npx") return readWords(args, npm);
  const [verb, ...rest] = args;
  return program === "npm" && (verb === "exec" || verb === "x") ? readWords(rest, npm) : undefined;
}

/** `[-y] [--package=name@version] name@version|bin [--] args…` */
function readWords(words: readonly string[], npm: string): NpmLaunch {
  let spec: string | undefined;
  let index = 0;
  for (; index < words.length; index++) {
    const word = words[index] ?? "";
    if (/^(?:-y|--yes|-q|--quiet|--no|--prefer-online|--prefer-offline)$/.test(word)) continue;
    if (word === "--") {
      index++;
      break;
    }
    const [, inPlace] = /^--package=(.+)$/.exec(word) ?? [];
    const following = word === "-p" || word === "--package" ? words[++index] : undefined;
    if (inPlace === undefined && following === undefined) {
      if (word.startsWith("-")) throw unclear(`the option ${word} is not understood`);
      break;
    }
    if (spec !== undefined) throw unclear("it names several packages");
    spec = inPlace ?? following;
  }
  const first = words[index];
  if (first === undefined) throw unclear("it names no program");
  const after = words.slice(index + 1);
  const args = after[0] === "--" && spec === undefined ? after.slice(1) : after;
  const { name, version } = readPackage(spec ?? first);
  return { name, version, bin: spec === undefined ? undefined : first, args, npm };
}

function readPackage(spec: string): { name: string; version: string } {
  const [, name, version] = PACKAGE.exec(spec) ?? [];
  if (name === undefined) throw unclear(`${JSON.stringify(spec)} is not a package of a registry`);
  if (version !== undefined && EXACT.test(version)) return { name, version };
  const found = version === undefined ? "no version" : `the version ${JSON.stringify(version)}`;
  throw notSent(
    "invalid_config",
    `An image is made for one exact version of an npm package; ${name} is named with ${found}.`,
    `Write ${name}@<version> in \`args\`, such as ${name}@1.2.3.`,
  );
}

function unclear(reason: string): ToolcribError {
  const hint = 'Write "args": ["-y", "package@1.2.3", …], or give `sandbox.image`.';
  return notSent("invalid_config", `No image can be made for this npx command: ${reason}.`, hint);
}

interface NpmImageRequest {
  readonly launch: NpmLaunch;
  readonly image: string;
  readonly base: string;
  readonly engine: ContainerEngine;
  readonly deps: SandboxDeps;
  readonly serverId: string;
  readonly signal: AbortSignal;
}

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const BUILD_TIMEOUT_MS = 5 * 60_000;
/** Changed with the recipe below, so that images of an older one are not taken for it. */
const RECIPE = "1";
const IMAGE_FOLDER = "/opt/toolcrib";

/** @param base What the base image is, so that a newer base makes a new image. */
export function npmImageTag({ name, version, bin }: NpmLaunch, base: string, arch: string): string {
  const digest = createHash("sha256")
    .update([RECIPE, base, arch, name, version, bin ?? ""].join("\n"))
    .digest("hex");
  // Image names allow less than package names; the digest tells apart what looks the same then.
  const words = name.toLowerCase().split("/");
  const path = words.map((word) => word.replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "x").join("/");
  const tag = version.replaceAll(/[^\w.-]/g, "-").slice(0, 80);
  return `localhost/toolcrib/npm/${path}:${tag}-${digest.slice(0, 12)}`;
}

/**
 * Makes an image for an npm package. npm installs it here, with the user's own settings, and the image gets the folder:
 * so no registry and no token ever gets into an image, and the build needs neither network nor npm. Install scripts are
 * not run, and nothing is taken from git, which npm prepares with programs of the package's own choice: they would be
 * foreign programs, outside of every sandbox.
 */
export async function makeNpmImage(request: NpmImageRequest): Promise<void> {
  const { image, engine, deps, signal, launch } = request;
  const make = async (): Promise<void> => {
    const { code } = await engine.run(["image", "inspect", image], { signal });
    if (code === 0) return;
    deps.warn(`An image is being made for ${launch.name}@${launch.version}; the next start finds it ready.`);
    await withImageFolder(deps.home, (folder) => installAndBuild(request, folder));
  };
  // Another process may be at it; both would succeed, but once is enough.
  await withImageLock({ home: deps.home, image, waitMs: INSTALL_TIMEOUT_MS + BUILD_TIMEOUT_MS, signal }, make);
}

async function installAndBuild(request: NpmImageRequest, folder: string): Promise<void> {
  const { launch, image, base, engine, deps, serverId, signal } = request;
  const { name, version } = launch;
  await install(request, folder);
  const entrypoint = await entrypointOf(launch, folder);
  await writeFile(join(folder, "Containerfile"), recipe(base, entrypoint));
  const flags = ["--label", `toolcrib.package=${name}@${version}`, "--tag", image];
  const { code, stderr } = await engine.run(["build", "--file", join(folder, "Containerfile"), ...flags, folder], {
    timeoutMs: BUILD_TIMEOUT_MS,
    holder: { home: deps.home, serverId },
    signal,
  });
  if (code !== 0) throw imageFailed(`The image for ${name}@${version} could not be made: ${lastLines(stderr, 3)}`);
}

function recipe(base: string, entrypoint: readonly string[]): string {
  const copy = `COPY node_modules ${IMAGE_FOLDER}/node_modules`;
  return `FROM ${base}\n${copy}\nENTRYPOINT ${JSON.stringify(entrypoint)}\nCMD []\n`;
}

async function install({ launch, engine, deps, serverId, signal }: NpmImageRequest, folder: string): Promise<void> {
  const { name, version, npm } = launch;
  await writeFile(join(folder, "package.json"), `{"private":true}\n`);
  // For the container, not for this machine. `--prefix` because npm else looks for a project above.
  const platform = ["--os=linux", `--cpu=${engine.arch}`, "--libc=glibc"];
  // One version never changes, so what npm has of it will do.
  const quiet = [
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--no-package-lock",
    "--no-update-notifier",
    "--loglevel=error",
  ];
  const args = ["install", "--prefix", folder, "--ignore-scripts", "--omit=dev", ...platform, ...quiet];
  const { code, stderr } = await runInGroup(npm, [...args, "--", `${name}@${version}`], {
    env: npmEnvironment(deps.env),
    cwd: folder,
    timeoutMs: INSTALL_TIMEOUT_MS,
    signal,
    home: deps.home,
    serverId,
  });
  if (code === 0) return;
  const said = lastLines(stderr.replaceAll(/^npm (?:error|ERR!) /gm, ""), 3);
  throw imageFailed(
    `npm could not install ${name}@${version}: ${said}`,
    `Check that \`npm view ${name}@${version}\` works.`,
  );
}

/** As npx chooses: the only program, the one that is named, or the one of the package's own name. */
async function entrypointOf({ name, bin }: NpmLaunch, folder: string): Promise<string[]> {
  const manifest: unknown = JSON.parse(await readFile(join(folder, "node_modules", name, "package.json"), "utf8"));
  const plainName = name.split("/").at(-1) ?? name;
  const declared = isJsonObject(manifest) ? manifest["bin"] : undefined;
  const programs: JsonObject =
    typeof declared === "string" ? { [plainName]: declared } : isJsonObject(declared) ? declared : {};
  const names = Object.keys(programs);
  const chosen = bin ?? (names.length === 1 ? names[0] : plainName);
  const file = chosen === undefined || !Object.hasOwn(programs, chosen) ? undefined : programs[chosen];
  if (typeof file !== "string") {
    const offered = names.length === 0 ? "it has no programs" : `it has ${names.join(", ")}`;
    throw imageFailed(
      `The package ${name} has no program ${chosen ?? plainName}; ${offered}.`,
      "Name one: npx --package …",
    );
  }
  const path = posix.join(IMAGE_FOLDER, "node_modules", name, posix.join("/", file));
  const text = await readFile(join(folder, "node_modules", name, posix.join("/", file)), "utf8").catch(() => undefined);
  if (text === undefined) throw imageFailed(`The package ${name} lacks its own program ${file}.`);
  const [firstLine = ""] = text.split("\n", 1);
  const isScript = /\.[cm]?js$/.test(file) ? !/^#!(?!.*node)/.test(firstLine) : /^#!.*node/.test(firstLine);
  return isScript ? ["node", path] : [path];
}

function imageFailed(message: string, hint?: string): ToolcribError {
  return notSent("server_unavailable", message, hint);
}

interface ImageLock {
  readonly home: string;
  readonly image: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Making an image is over by then, wherever it was begun. */
const MAX_USE_MS = 24 * 3600 * 1000;
const LOCK_POLL_MS = 500;

/** Gives the work a folder that is gone afterwards. */
async function withImageFolder(home: string, work: (folder: string) => Promise<void>): Promise<void> {
  const place = placeHash(systemProcessTable()?.place ?? "");
  const folder = join(imageFolders(home), `${process.pid}-${place}-${randomBytes(4).toString("hex")}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Does the work when no other process does it. The lock itself does not hear a signal. */
async function withImageLock(turn: ImageLock, work: () => Promise<void>): Promise<void> {
  const { home, image, waitMs, signal } = turn;
  const run = join(home, "run");
  await mkdir(run, { recursive: true, mode: 0o700 });
  const key = createHash("sha256").update(image).digest("hex").slice(0, 16);
  const deadline = performance.now() + waitMs;
  let isOurs = false;
  const begin = (): Promise<void> => {
    isOurs = true;
    return work();
  };
  for (;;) {
    if (signal.aborted) throw new ToolcribError("cancelled", "making an image was cancelled");
    try {
      return await withLock(join(run, `image-${key}`), begin, { waitMs: LOCK_POLL_MS });
    } catch (error) {
      if (isOurs || performance.now() > deadline) throw error;
      if (!(error instanceof ToolcribError && error.code === "conflict")) throw error;
    }
  }
}

/** Removes those of processes that are dead. Never rejects. */
export async function sweepImageFolders(home: string, table: ProcessTable | null): Promise<void> {
  const here = placeHash(table?.place ?? "");
  for (const name of await readdir(imageFolders(home)).catch(() => [])) {
    const [, pid, place] = /^(\d+)-([0-9a-f]{8})-[0-9a-f]{8}$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const folder = join(imageFolders(home), name);
    // A pid says nothing about processes of another boot, container or machine, and may belong to another process by now.
    const isDead = table !== null && place === here && table.find(Number(pid)) === null;
    const changedAt = (await stat(folder).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (isDead || Date.now() - changedAt > MAX_USE_MS)
      await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

/** The folders in which images are made, `$TOOLCRIB_HOME/run/images/<pid>-…`: one that a killed process left is found again. */
function imageFolders(home: string): string {
  return join(home, "run", "images");
}

function placeHash(place: string): string {
  return createHash("sha256").update(place).digest("hex").slice(0, 8);
}

function cancelled(): ToolcribError {
  return notSent("cancelled", "waiting for an image was cancelled");
}
