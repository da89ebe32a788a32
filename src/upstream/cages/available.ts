/** Which cages this machine offers, found by trying them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { asToolcribError } from "../../model/errors.ts";
import type { CageKind } from "../../model/sandbox.ts";
import { explainEnd } from "./bubblewrap-failures.ts";
import type { CageDeps } from "./cage.ts";
import { becomeUser, cageUser } from "./cage-user.ts";
import { containerEngine } from "./container/engine.ts";
import { findBubblewrap } from "./find-bubblewrap.ts";
import { readCage } from "./read-cage.ts";
import { type CageOwner, namespaceOptions, systemMounts } from "./system-mounts.ts";

export interface AvailableCage {
  readonly kind: CageKind;
  readonly available: boolean;
  readonly version?: string;
  readonly reason?: string;
  readonly hint?: string;
}

const TRY_MS = 10_000;
const run = promisify(execFile);

/** Never rejects. */
export async function availableCages(deps: Pick<CageDeps, "env" | "containers">): Promise<AvailableCage[]> {
  return [
    { kind: "none", available: true },
    ...(await Promise.all([
      tried("bubblewrap", async () => tryBubblewrap(deps.env)),
      tried("container", async () => {
        const { kind, version } = await containerEngine(deps.containers, deps.env);
        return `${kind} ${version}`;
      }),
    ])),
  ];
}

async function tried(kind: CageKind, attempt: () => Promise<string>): Promise<AvailableCage> {
  try {
    return { kind, available: true, version: await attempt() };
  } catch (thrown) {
    const { message, hint } = asToolcribError(thrown);
    return { kind, available: false, reason: message, hint };
  }
}

/** Makes a cage for a moment: to have the program is not yet to be allowed to use it. */
async function tryBubblewrap(env: NodeJS.ProcessEnv): Promise<string> {
  const { program } = await findBubblewrap(env);
  const user = process.getuid?.() === 0 ? await cageUser([]) : undefined;
  const isRoots = user?.mountsAs === "root";
  const owner: CageOwner = isRoots ? { kind: "root", ...user } : { kind: "namespace" };
  const become = user === undefined ? [] : becomeUser(user);
  const words = [
    ...(isRoots ? [] : become),
    program,
    ...namespaceOptions("none", owner),
    ...systemMounts("none", undefined, owner),
    ...["--", ...(isRoots ? become : []), "/bin/true"],
  ];
  const options = { env: { PATH: "/usr/bin:/bin" }, timeout: TRY_MS, cwd: "/" };
  try {
    const { stdout } = await run(program, ["--version"], options);
    const [launcher = program, ...args] = words;
    await run(launcher, args, options);
    return stdout.trim();
  } catch (error) {
    const end = { exitCode: 1, signal: null, stderr: stderrOf(error), heard: false };
    throw explainEnd(end, readCage("bubblewrap", "/", env), false) ?? error;
  }
}

function stderrOf(error: unknown): string {
  return error instanceof Error && "stderr" in error ? String(error.stderr).trim() : String(error);
}
