/** The servers of a config as they are where the hub is deployed: in the gateway, beside it, or remote as before. */
import { entryOfSpec } from "../../config/spec-entry.ts";
import type { JsonObject } from "../../model/json.ts";
import { isLoopback } from "../../model/loopback.ts";
import { cageImageOf, cageKindOf } from "../../model/sandbox.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { readCage } from "../../upstream/cages/read-cage.ts";
import type { DeployedServer, Variable } from "./deployment.ts";
import { envText } from "./references.ts";
import { serviceNames } from "./service-names.ts";
import { plainTextNames, type SecretsOut, withoutPlainSecrets } from "./without-secrets.ts";

export interface PortableServers {
  /** For `mcpServers` of the gateway's config. */
  readonly entries: JsonObject;
  /** For `roles.<role>.mcpServers`, by role. */
  readonly ofRoles: ReadonlyMap<string, JsonObject>;
  readonly deployed: readonly DeployedServer[];
}

type Warn = (message: string) => void;

/** Programs that the image has. */
const IN_IMAGE = new Set(["node", "npx", "npm", "toolcrib"]);
/** What says where a program is and how it runs; a server beside the gateway has an address instead. */
const OF_PROGRAMS = ["command", "args", "env", "cwd", "transport", "sandbox", "replicas"];

export function portableServers(
  specs: readonly ServerSpec[],
  options: SecretsOut & { readonly taken: Iterable<string>; readonly env: NodeJS.ProcessEnv },
): PortableServers {
  const { taken, env, warn, names: variables } = options;
  const beside = specs.filter(isHttpContainer);
  const names = serviceNames(
    beside.map(({ id }) => id),
    taken,
  );
  const nameOf = new Map(beside.map(({ id }, index) => [id, names[index] ?? id]));
  const deployed: DeployedServer[] = [];
  const entries: JsonObject = {};
  const ofRoles = new Map<string, JsonObject>();
  for (const spec of specs) {
    const entry = withoutPlainSecrets(spec.id, entryOfSpec(spec), options);
    const asTheyStand = plainTextNames(entry);
    if (asTheyStand.length > 0) {
      warn(
        `The server "${spec.id}" is exported with the plain texts of ${asTheyStand.join(", ")}: no secret may be there.`,
      );
    }
    const name = nameOf.get(spec.id);
    if (name === undefined) warnOfProgram(spec, warn);
    const server = name === undefined ? undefined : deployedServer(spec, entry, { name, env, warn, names: variables });
    if (server !== undefined) deployed.push(server);
    const portable = server === undefined ? entry : addressOf(spec, entry, server);
    const [role] = spec.roles ?? [];
    if (spec.replaces === undefined || role === undefined) entries[spec.id] = portable;
    else {
      const { roles: _roles, ...own } = portable;
      ofRoles.set(role, { ...ofRoles.get(role), [spec.replaces]: own });
    }
  }
  return { entries, ofRoles, deployed };
}

function isHttpContainer({ sandbox }: ServerSpec): boolean {
  return typeof sandbox === "object" && cageImageOf(sandbox) !== undefined && sandbox.port !== undefined;
}

function deployedServer(
  { id, sandbox = "none", baseDir, cwd }: ServerSpec,
  entry: JsonObject,
  { name, env, warn, names }: SecretsOut & { readonly name: string; readonly env: NodeJS.ProcessEnv },
): DeployedServer {
  const { image = "", port = 0, network, read, write, memory, cpus, pids } = readCage(sandbox, baseDir, env);
  const lost = (key: string): Variable => {
    const variable = { name: names.next([id, key]), needed: true };
    warn(`The server "${id}" gets ${key} from ${variable.name}: beside the gateway nobody looks its reference up.`);
    return variable;
  };
  const texts = Object.entries((entry["env"] ?? {}) as Record<string, string>); // As the schema of entries says.
  const { command, args = [] } = entry as { command?: string; args?: string[] }; // As above.
  return {
    id,
    name,
    image,
    entrypoint: command,
    args: args.map((text, index) => envText(text, () => lost(`args_${index}`))),
    cwd,
    env: Object.fromEntries(texts.map(([key, text]) => [key, envText(text, () => lost(key))])),
    port,
    needsNetwork: network === "host",
    read: read.filter((path) => !write.includes(path)),
    write,
    memory,
    cpus,
    pids,
  };
}

function addressOf({ sandbox }: ServerSpec, entry: JsonObject, { name, port }: DeployedServer): JsonObject {
  const path = typeof sandbox === "object" ? (sandbox.path ?? "/mcp") : "/mcp";
  const rest = Object.fromEntries(Object.entries(entry).filter(([key]) => !OF_PROGRAMS.includes(key)));
  // The platform's own network: nobody else is on it.
  return { url: `http://${name}:${port}${path}`, transport: "http", allowHttp: true, ...rest };
}

function warnOfProgram({ id, command, cwd, url, sandbox, enabled }: ServerSpec, warn: Warn): void {
  if (!enabled) return;
  if (url !== undefined) {
    const { hostname } = URL.parse(url) ?? {};
    if (hostname !== undefined && isLoopback(hostname)) {
      warn(`The server "${id}" is at ${hostname}, which is another machine inside of a container.`);
    }
    return;
  }
  if (command !== undefined && !IN_IMAGE.has(command)) {
    warn(`The server "${id}" runs ${command}, which the image does not have: add it, or give it an image and a port.`);
  }
  if (cwd !== undefined) warn(`The server "${id}" runs in ${cwd}, which is a folder of this machine: mount it.`);
  const kind = sandbox === undefined ? "none" : cageKindOf(sandbox);
  if (kind !== "none") {
    warn(`The server "${id}" has the cage ${kind}, which cannot be made inside of the gateway's own container.`);
  }
}
