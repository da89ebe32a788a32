/** The program that runs containers: podman or docker, found by itself or named in the config. */
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { ContainersConfig } from "../../../model/sandbox.ts";
import { engineEnvironment } from "./engine-environment.ts";
import { type Holder, runHeld } from "./run-held.ts";
import { lastWords, type ProgramEnd, runToEnd } from "./run-engine.ts";

export interface ContainerEngine {
  /** As it is started. */
  readonly program: string;
  readonly kind: "podman" | "docker";
  readonly version: string;
  /** Runs without root's powers on this machine: root in a container is the user then. */
  readonly rootless: boolean;
  /** Of the containers, in npm's words. */
  readonly arch: string;
  /** The environment that the program itself gets. */
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[], options?: EngineRun): Promise<ProgramEnd>;
}

export interface EngineRun {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** For what takes long; see run-held.ts. */
  readonly holder?: Holder;
}

/** podman first: it needs no daemon. */
const KNOWN = ["podman", "docker"] as const;
const ASK_MS = 20_000;
const RUN_MS = 30_000;

export const CONTAINER_ADVICE =
  'Install podman, or start docker, or name the program in `containers.program`. `sandbox: "bubblewrap"` needs no container engine.';

/**
 * Asked anew for every server: an engine may come and go, and asking costs a tenth of a second. Throws
 * `server_unavailable` with the reason for each program that was tried.
 */
export async function containerEngine(
  { program }: Pick<ContainersConfig, "program">,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ContainerEngine> {
  const reasons: string[] = [];
  for (const candidate of program === undefined ? KNOWN : [program]) {
    try {
      return await askEngine(candidate, env, signal);
    } catch (error) {
      if (!(error instanceof ToolcribError) || error.code === "cancelled") throw error;
      reasons.push(`${candidate}: ${error.message}`);
    }
  }
  throw new ToolcribError("server_unavailable", `No container can be run on this machine. ${reasons.join("; ")}`, {
    hint: CONTAINER_ADVICE,
    details: { sent: false },
  });
}

async function askEngine(program: string, hubEnv: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<ContainerEngine> {
  const env = engineEnvironment(hubEnv);
  const run = (args: readonly string[], { timeoutMs = RUN_MS, signal: stop, holder }: EngineRun = {}) => {
    const settings = { env, timeoutMs, signal: stop };
    return holder === undefined
      ? runToEnd(program, args, settings)
      : runHeld(program, args, { ...settings, ...holder });
  };
  const ask = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args, { timeoutMs: ASK_MS, signal });
    if (code === 0) return stdout;
    const said = lastWords(stderr, 2) || `\`${program} ${args[0] ?? ""}\` ended with code ${code}`;
    throw new ToolcribError("server_unavailable", said);
  };
  // Not `info`, which starts a dozen programs to find out their versions.
  const facts = readVersion(await ask("version", "--format", "{{json .}}"));
  if (facts === undefined) throw new ToolcribError("server_unavailable", "it is neither podman nor docker");
  if (facts.kind === "podman") {
    // The version alone would not show a storage that cannot be used.
    await ask("ps", "--quiet");
    return { program, env, run, ...facts, rootless: process.getuid?.() !== 0 };
  }
  const security = await ask("info", "--format", "{{json .SecurityOptions}}");
  return { program, env, run, ...facts, rootless: security.includes("rootless") };
}

type EngineFacts = Pick<ContainerEngine, "kind" | "version" | "arch">;

/** podman is its own server unless it is a remote one; docker never is. */
function readVersion(text: string): EngineFacts | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(answer)) return undefined;
  const client = objectAt(answer, "Client");
  const server = isJsonObject(answer["Server"]) ? answer["Server"] : client;
  const version = server["Version"] ?? client["Version"];
  if (typeof version !== "string") return undefined;
  // Only docker says which API its client speaks at most; a `docker` that is podman in disguise answers as podman.
  const isDocker = "DefaultAPIVersion" in client || "ApiVersion" in client;
  const { Arch: arch, OsArch: both } = server;
  const word = arch ?? (typeof both === "string" ? both.split("/")[1] : undefined);
  return { kind: isDocker ? "docker" : "podman", version, arch: npmArch(word) };
}

function objectAt(value: JsonObject, key: string): JsonObject {
  const inner = value[key];
  return isJsonObject(inner) ? inner : {};
}

function npmArch(word: unknown): string {
  if (word === "amd64" || word === "x86_64") return "x64";
  if (word === "arm64" || word === "aarch64") return "arm64";
  return typeof word === "string" && word !== "" ? word : process.arch;
}
