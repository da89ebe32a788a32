/** The sandbox of one server, as its spec asks for it. */
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { SandboxKind, ServerSpec } from "../../model/server-spec.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import { notSent } from "../wire.ts";
import { bubblewrapSandbox, explainEnd, findBubblewrap } from "./bubblewrap-sandbox.ts";
import { containerEngine } from "./container-engine.ts";
import { containerSandbox } from "./container-sandbox.ts";
import { readSandbox, type Sandbox, type SandboxDeps, type SandboxSettings } from "./sandbox-settings.ts";
import { userSwitch, sandboxUser } from "./sandbox-user.ts";
import { type SandboxOwner, namespaceOptions, systemMounts } from "./system-mounts.ts";
import { runProgram } from "../../base/programs.ts";

export interface SpecSandbox {
  readonly settings: SandboxSettings;
  readonly baseDir: string;
  readonly deps: Omit<SandboxDeps, "warn">;
  open(warn: (message: string) => void): Sandbox;
}

/** Undefined for a server that runs like any other program. */
export function specSandbox(spec: ServerSpec, { sandboxes, env }: ConnectionDeps): SpecSandbox | undefined {
  if (spec.sandbox === undefined || spec.sandbox === "none") return undefined;
  const { baseDir, ownFolder } = spec;
  const settings = { ...readSandbox(spec.sandbox, baseDir, env), ownFolder };
  if (settings.kind === "none") return undefined;
  if (sandboxes === undefined) {
    const message = "Its sandbox cannot be made: this program has no sandbox settings.";
    throw notSent("invalid_config", message, "Give the connection `sandboxes`.");
  }
  const { home, userHome } = sandboxes;
  const deps = { home, userHome, env, containers: sandboxes.containers() };
  return { settings, baseDir, deps, open: (warn) => openSandbox(settings, { ...deps, warn }) };
}

/** Throws for `none`: what runs without a sandbox needs no launch of its own. */
export function openSandbox(settings: SandboxSettings, deps: SandboxDeps): Sandbox {
  switch (settings.kind) {
    case "bubblewrap":
      return bubblewrapSandbox(settings, deps);
    case "container":
      return containerSandbox(settings, deps);
    case "none":
      throw new ToolcribError("internal", "There is no sandbox to open.");
  }
}

export interface AvailableSandbox {
  readonly kind: SandboxKind;
  readonly available: boolean;
  readonly version?: string;
  readonly reason?: string;
  readonly hint?: string;
}

const TRY_TIMEOUT_MS = 10_000;

/** Which sandboxes this machine offers, found by trying them. Never rejects. */
export async function availableSandboxes(deps: Pick<SandboxDeps, "env" | "containers">): Promise<AvailableSandbox[]> {
  return [
    { kind: "none", available: true },
    ...(await Promise.all([
      tryKind("bubblewrap", async () => tryBubblewrap(deps.env)),
      tryKind("container", async () => {
        const { kind, version } = await containerEngine(deps.containers, deps.env);
        return `${kind} ${version}`;
      }),
    ])),
  ];
}

async function tryKind(kind: SandboxKind, attempt: () => Promise<string>): Promise<AvailableSandbox> {
  try {
    return { kind, available: true, version: await attempt() };
  } catch (thrown) {
    const { message, hint } = asToolcribError(thrown);
    return { kind, available: false, reason: message, hint };
  }
}

/** Makes a sandbox for a moment: the program may be installed and still not be allowed to make one. */
async function tryBubblewrap(env: NodeJS.ProcessEnv): Promise<string> {
  const { program } = await findBubblewrap(env);
  const user = process.getuid?.() === 0 ? await sandboxUser([]) : undefined;
  const isRoots = user?.mountsAs === "root";
  const owner: SandboxOwner = isRoots ? { kind: "root", ...user } : { kind: "namespace" };
  const become = user === undefined ? [] : userSwitch(user);
  const words = [
    ...(isRoots ? [] : become),
    program,
    ...namespaceOptions("none", owner),
    ...systemMounts("none", undefined, owner),
    ...["--", ...(isRoots ? become : []), "/bin/true"],
  ];
  const run = async (command: string, args: readonly string[]): Promise<string> => {
    const options = { env: { PATH: "/usr/bin:/bin" }, timeoutMs: TRY_TIMEOUT_MS, cwd: "/" };
    const end = await runProgram(command, args, options);
    if (end.kind === "exited" && end.code === 0) return end.stdout;
    const stderr = "stderr" in end ? end.stderr.trim() : end.kind.replaceAll("_", " ");
    const settings = readSandbox("bubblewrap", "/", env);
    const failure = explainEnd({ exitCode: 1, signal: null, stderr, heard: false }, settings, false);
    throw failure ?? new ToolcribError("server_unavailable", stderr);
  };
  const version = await run(program, ["--version"]);
  const [launcher = program, ...args] = words;
  await run(launcher, args);
  return version.trim();
}
