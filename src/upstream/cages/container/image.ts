/** The image that a server runs in: the one that its entry names, or one made for its npm package. */
import { ToolcribError } from "../../../model/errors.ts";
import type { CagedProgram, CageDeps, CageSettings } from "../cage.ts";
import type { ContainerEngine } from "./engine.ts";
import { makeNpmImage, npmImageTag } from "./npm-image.ts";
import { npmLaunch } from "./npm-package.ts";
import { lastWords } from "./run-engine.ts";
import { SharedWork } from "./shared-work.ts";

export const DEFAULT_BASE = "docker.io/library/node:24-slim";

/** A large image over a slow line; after that something is wrong. */
const PULL_MS = 10 * 60_000;

export interface ServerImage {
  readonly image: string;
  /** Stands in for the image's own entrypoint; undefined leaves that. */
  readonly entrypoint: string | undefined;
  readonly args: readonly string[];
}

export interface ImageRequest {
  readonly program: Pick<CagedProgram, "serverId" | "command" | "args">;
  readonly settings: Pick<CageSettings, "image">;
  readonly engine: ContainerEngine;
  readonly deps: CageDeps;
  readonly signal: AbortSignal;
}

// For the whole process: two servers of one image, and a second attempt while the first is still at work.
const underWay = new SharedWork();

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
    await underWay.join(`${engine.program} ${image}`, make, signal);
  }
  return { image, entrypoint: undefined, args: launch.args };
}

/** What begins with a dash would be an option. */
function checkName(image: string): void {
  if (/^[A-Za-z0-9][\w./:@-]*$/.test(image)) return;
  throw new ToolcribError("invalid_config", `${JSON.stringify(image)} is no name of an image.`, {
    hint: "Write it as in host.example.com/folder/name:tag.",
    details: { sent: false },
  });
}

async function ensureImage(image: string, request: ImageRequest): Promise<string> {
  const { engine, signal } = request;
  const known = await imageId(image, engine, signal);
  if (known !== undefined) return known;
  await underWay.join(`${engine.program} ${image}`, (stop) => pull(image, request, stop), signal);
  return (await imageId(image, engine, signal)) ?? image;
}

async function pull(image: string, { program, engine, deps }: ImageRequest, signal: AbortSignal): Promise<void> {
  deps.warn(`The image ${image} is being fetched with ${engine.program}.`);
  const holder = { home: deps.home, serverId: program.serverId };
  const { code, stderr } = await engine.run(["pull", "--quiet", image], { timeoutMs: PULL_MS, signal, holder });
  if (code === 0) return;
  throw new ToolcribError("server_unavailable", `The image ${image} could not be fetched: ${lastWords(stderr, 3)}`, {
    hint: `Check its name, and that \`${engine.program} pull ${image}\` works.`,
    details: { sent: false },
  });
}

/** undefined if this machine does not have it. */
async function imageId(image: string, engine: ContainerEngine, signal?: AbortSignal): Promise<string | undefined> {
  const { code, stdout, stderr } = await engine.run(["image", "inspect", "--format", "{{.Id}}", image], { signal });
  if (code === 0) return stdout.trim();
  if (/no such|not known|not found|unable to find/i.test(stderr)) return undefined;
  throw new ToolcribError(
    "server_unavailable",
    `${engine.program} cannot be asked for images: ${lastWords(stderr, 3)}`,
    {
      details: { sent: false },
    },
  );
}

function noImage(command: string): ToolcribError {
  const what =
    command === "" ? "It has neither a command nor an image" : `No image is known for ${JSON.stringify(command)}`;
  return new ToolcribError("invalid_config", `${what}: a container has only what its image has.`, {
    hint: 'Give `sandbox.image`; or start an npm package at one version, as in npx -y package@1.2.3; or use `sandbox: "bubblewrap"`, which runs the programs of this machine.',
    details: { sent: false },
  });
}
