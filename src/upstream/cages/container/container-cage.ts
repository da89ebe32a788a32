/** A cage made of a container: what the program has is what its image has, and the paths that were named. */
import { join } from "node:path";
import { ToolcribError } from "../../../model/errors.ts";
import type { Cage, CagedLaunch, CagedProgram, CageDeps, CageSettings, RunEnd } from "../cage.ts";
import { type CageMount, checkedMounts, namedPaths } from "../named-mounts.ts";
import { refuseNul } from "../no-nul.ts";
import { carryEnvironment } from "./carried-environment.ts";
import { containerUser } from "./container-user.ts";
import { type ContainerEngine, containerEngine } from "./engine.ts";
import { imageFor, type ServerImage } from "./image.ts";
import { containerLabels, containerName } from "./labels.ts";
import { holdContainer, stopContainer, thisHub } from "./live-containers.ts";
import { runFlags } from "./run-flags.ts";

/** The launch of a container, which those that serve HTTP need to know more about. */
export interface ContainerLaunch extends CagedLaunch {
  readonly name: string;
  /** Asks the engine something about it. */
  ask(args: readonly string[], signal?: AbortSignal): Promise<{ readonly code: number; readonly stdout: string }>;
  stop(): Promise<void>;
  cleanUp(): Promise<void>;
}

export interface ContainerCage extends Cage {
  makeReady(program: CagedProgram, signal: AbortSignal): Promise<void>;
  prepare(program: CagedProgram, signal: AbortSignal): Promise<ContainerLaunch>;
}

/** What was found out for a start. */
interface Ready {
  readonly engine: ContainerEngine;
  readonly image: ServerImage;
}

/**
 * Node's extra pipes are sockets, which nobody can open by a path: `cat` makes a real pipe of the one at 3, and the
 * engine reads its env file from there.
 */
const WITH_ENV_PIPE = 'exec 4<&0; cat <&3 4<&- | { exec 3<&0 <&4 4<&-; exec "$0" "$@"; }';

export function containerCage(settings: CageSettings, deps: CageDeps): ContainerCage {
  let ready: Ready | undefined;
  const makeReady = async (program: CagedProgram, signal: AbortSignal): Promise<Ready> => {
    const engine = await containerEngine(deps.containers, deps.env, signal);
    return { engine, image: await imageFor({ program, settings, engine, deps, signal }) };
  };
  // Paths that are not there would be made by some engines, with root as their owner.
  const check = (program: CagedProgram): CageMount[] => {
    refuseNul(program);
    return checkedMounts(namedPaths(settings, program), deps.home);
  };
  return {
    async makeReady(program, signal) {
      check(program);
      ready = await makeReady(program, signal);
    },
    async prepare(program, signal) {
      const mounts = check(program);
      const { engine, image: chosen } = ready ?? (await makeReady(program, signal));
      const { image, entrypoint, args } = chosen;
      const environment = carryEnvironment(program.env, deps.env);
      const { serverId, cwd } = program;
      const name = containerName(serverId);
      const flags = runFlags({
        kind: engine.kind,
        name,
        labels: containerLabels(serverId, deps.home, thisHub()),
        settings,
        mounts,
        user: containerUser(engine, mounts),
        envFile: environment.file === "" ? undefined : "/dev/fd/3",
        envNames: environment.byName,
        given: environment.names,
        cwd,
        flags: deps.containers.flags ?? [],
      });
      const words = [...flags, ...(entrypoint === undefined ? [] : ["--entrypoint", entrypoint]), image, ...args];
      const remove = holdContainer({ engine, name, home: deps.home, warn: (message) => deps.warn(message) });
      return {
        name,
        ...(environment.file === ""
          ? { command: engine.program, args: words }
          : {
              command: "/bin/sh",
              args: ["-c", WITH_ENV_PIPE, engine.program, ...words],
              fds: [Buffer.from(environment.file)],
            }),
        env: { ...engine.env, ...environment.launcher },
        // podman's monitor leaves a file named `oom` where it was started.
        cwd: join(deps.home, "run"),
        ask: (question, asked) => engine.run(question, { signal: asked }),
        explain: (end) => explain(end, engine.program, image, settings.memory),
        stop: () => stopContainer(engine, name),
        cleanUp: remove,
      };
    },
  };
}

/** The codes of `run` itself: 125 is the engine's own failure, 126 and 127 a program that the image does not have. */
function explain(end: RunEnd, program: string, image: string, memory: number | undefined): ToolcribError | undefined {
  const { exitCode, stderr, heard } = end;
  // 128 and SIGKILL, which is how the kernel ends what takes too much.
  if (exitCode === 137 && memory !== undefined) {
    const text = `was killed, as happens to what needs more memory than its sandbox allows (${memory} bytes)`;
    return new ToolcribError("server_unavailable", text, { hint: "Raise `sandbox.memory`.", details: { exitCode } });
  }
  if (heard) return undefined;
  if (exitCode === 125) {
    return unavailable(
      `${program} could not run the container: ${stderr}`,
      "Flags for this machine, such as --runtime, go into `containers.flags`.",
    );
  }
  if (exitCode !== 126 && exitCode !== 127) return undefined;
  // The engine's runtime gives the same codes when it cannot run anything at all.
  const isMissing = /not found|no such file|exec format|permission denied/i.test(stderr);
  const hint = isMissing
    ? "A container has the programs of its image only; correct `command`, or leave it out for the image's own."
    : "Flags for this machine, such as --runtime, go into `containers.flags`.";
  return unavailable(`the program could not be started in the image ${image}: ${stderr}`, hint);
}

function unavailable(message: string, hint: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { hint, details: { sent: false } });
}
