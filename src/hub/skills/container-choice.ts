/** Whether a server that a skill offers as an image runs in a container or as the skill says otherwise. */
import type { LoadedConfig } from "../../config/load-config.ts";
import { asToolcribError } from "../../model/errors.ts";
import { sandboxKindOf, type SandboxEntry } from "../../model/server-spec.ts";
import type { ContainerTemplate, RequiredServer } from "../../model/skill.ts";
import { withContainer } from "../../skills/servers/server-entry.ts";
import { containerEngine } from "../../upstream/sandbox/container-engine.ts";

export interface ChosenServer {
  readonly server: RequiredServer;
  /** What a person should know about the choice. */
  readonly notice?: string;
}

/** Looks for an engine now, and only if one of the servers comes as an image. */
export async function chooseContainers(
  servers: readonly RequiredServer[],
  { config }: Pick<LoadedConfig, "config">,
  env: NodeJS.ProcessEnv,
): Promise<(server: RequiredServer) => ChosenServer> {
  if (!servers.some(({ docker }) => docker !== undefined)) return (server) => ({ server });
  const missing = await containerEngine(config.containers ?? {}, env).then(
    () => undefined,
    (error: unknown) => asToolcribError(error).message,
  );
  const cage = config.skills.sandbox ?? config.sandbox;
  return (server) => chooseContainer(server, missing, cage);
}

function chooseContainer(
  server: RequiredServer,
  missing: string | undefined,
  cage: SandboxEntry | undefined,
): ChosenServer {
  const { name, docker, template } = server;
  const kind = cage === undefined ? "none" : sandboxKindOf(cage);
  // Whoever chose another cage for skills gets that, if the server can be run in it.
  if (docker === undefined || (kind === "bubblewrap" && template !== undefined)) return { server };
  const { image, port } = docker;
  const what = `The server ${name}`;
  const bounds = cage === undefined || kind === "none" ? {} : boundsOf(cage);
  const why = port !== undefined && bounds.network === "none" ? NO_NETWORK : missing;
  if (why === undefined) {
    return {
      server: withContainer(server, bounds),
      notice: `${what} runs in a container of the image ${image}. ${networkText(port, bounds.network)}`,
    };
  }
  if (template === undefined) return { server, notice: `${what} comes only as the image ${image}. ${why}` };
  return {
    server,
    notice: `${what} is not run in a container of the image ${image}, but as the skill says otherwise. ${why}`,
  };
}

const NO_NETWORK =
  "Its port cannot be published, because `sandbox` gives the servers of skills no network; with " +
  '"network": "host" it can.';

/** An image of a skill's choice is no way out of what the operator chose for skills. */
function boundsOf(cage: SandboxEntry): Omit<ContainerTemplate, "image" | "port"> {
  if (typeof cage === "string") return { network: "none" };
  const { network, memory, cpus, pids, timeout } = cage;
  return {
    network,
    memory,
    cpus,
    pids,
    timeout,
  };
}

function networkText(port: number | undefined, network: "none" | "host" | undefined): string {
  if (port !== undefined) return "It has a network, because its port is published.";
  if (network === "host") return "It has a network, as `sandbox` says.";
  return 'It has no network unless `sandbox` of its entry says "network": "host".';
}
