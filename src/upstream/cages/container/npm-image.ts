/**
 * Makes an image for an npm package. npm installs it here, with the user's own settings, and the image gets the folder:
 * so no registry and no token ever gets into an image, and the build needs neither network nor npm. Install scripts are
 * not run, and nothing is taken from git, which npm prepares with programs of the package's own choice: they would be
 * somebody else's programs, outside of every cage.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { CageDeps } from "../cage.ts";
import { npmEnvironment } from "./engine-environment.ts";
import type { ContainerEngine } from "./engine.ts";
import { inImageFolder, whileNobodyElse } from "./image-folders.ts";
import type { NpmLaunch } from "./npm-package.ts";
import { lastWords } from "./run-engine.ts";
import { runHeld } from "./run-held.ts";

export interface NpmImageRequest {
  readonly launch: NpmLaunch;
  readonly image: string;
  readonly base: string;
  readonly engine: ContainerEngine;
  readonly deps: CageDeps;
  readonly serverId: string;
  readonly signal: AbortSignal;
}

const INSTALL_MS = 5 * 60_000;
const BUILD_MS = 5 * 60_000;
/** Changed with the recipe below, so that images of an older one are not taken for it. */
const RECIPE = "1";
const FOLDER = "/opt/toolcrib";

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

export async function makeNpmImage(request: NpmImageRequest): Promise<void> {
  const { image, engine, deps, signal, launch } = request;
  const make = async (): Promise<void> => {
    const { code } = await engine.run(["image", "inspect", image], { signal });
    if (code === 0) return;
    deps.warn(`An image is being made for ${launch.name}@${launch.version}; the next start finds it ready.`);
    await inImageFolder(deps.home, (folder) => installAndBuild(request, folder));
  };
  // Another process may be at it; both would succeed, but once is enough.
  await whileNobodyElse({ home: deps.home, image, waitMs: INSTALL_MS + BUILD_MS, signal }, make);
}

async function installAndBuild(request: NpmImageRequest, folder: string): Promise<void> {
  const { launch, image, base, engine, deps, serverId, signal } = request;
  const { name, version } = launch;
  await install(request, folder);
  const entrypoint = await entrypointOf(launch, folder);
  await writeFile(join(folder, "Containerfile"), recipe(base, entrypoint));
  const flags = ["--label", `toolcrib.package=${name}@${version}`, "--tag", image];
  const { code, stderr } = await engine.run(["build", "--file", join(folder, "Containerfile"), ...flags, folder], {
    timeoutMs: BUILD_MS,
    holder: { home: deps.home, serverId },
    signal,
  });
  if (code !== 0) throw failed(`The image for ${name}@${version} could not be made: ${lastWords(stderr, 3)}`);
}

function recipe(base: string, entrypoint: readonly string[]): string {
  const lines = [
    `FROM ${base}`,
    `COPY node_modules ${FOLDER}/node_modules`,
    `ENTRYPOINT ${JSON.stringify(entrypoint)}`,
  ];
  return `${lines.join("\n")}\nCMD []\n`;
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
  const { code, stderr } = await runHeld(npm, [...args, "--", `${name}@${version}`], {
    env: npmEnvironment(deps.env),
    cwd: folder,
    timeoutMs: INSTALL_MS,
    signal,
    home: deps.home,
    serverId,
  });
  if (code === 0) return;
  const said = lastWords(stderr.replaceAll(/^npm (?:error|ERR!) /gm, ""), 3);
  throw failed(
    `npm could not install ${name}@${version}: ${said}`,
    `Check that \`npm view ${name}@${version}\` works.`,
  );
}

/** As npx chooses: the only program, the one that is named, or the one of the package's own name. */
async function entrypointOf({ name, bin }: NpmLaunch, folder: string): Promise<string[]> {
  const manifest = await readManifest(join(folder, "node_modules", name, "package.json"));
  const plainName = name.split("/").at(-1) ?? name;
  const declared = manifest["bin"];
  const programs: JsonObject =
    typeof declared === "string" ? { [plainName]: declared } : isJsonObject(declared) ? declared : {};
  const names = Object.keys(programs);
  const chosen = bin ?? (names.length === 1 ? names[0] : plainName);
  const file = chosen === undefined || !Object.hasOwn(programs, chosen) ? undefined : programs[chosen];
  if (typeof file !== "string") {
    const offered = names.length === 0 ? "it has no programs" : `it has ${names.join(", ")}`;
    throw failed(`The package ${name} has no program ${chosen ?? plainName}; ${offered}.`, "Name one: npx --package …");
  }
  const path = posix.join(FOLDER, "node_modules", name, posix.join("/", file));
  const text = await readFile(join(folder, "node_modules", name, posix.join("/", file)), "utf8").catch(() => undefined);
  if (text === undefined) throw failed(`The package ${name} lacks its own program ${file}.`);
  const [firstLine = ""] = text.split("\n", 1);
  const isScript = /\.[cm]?js$/.test(file) ? !/^#!(?!.*node)/.test(firstLine) : /^#!.*node/.test(firstLine);
  return isScript ? ["node", path] : [path];
}

async function readManifest(file: string): Promise<JsonObject> {
  const value: unknown = JSON.parse(await readFile(file, "utf8"));
  return isJsonObject(value) ? value : {};
}

function failed(message: string, hint?: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { hint, details: { sent: false } });
}
