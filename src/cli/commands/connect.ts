import { nearMatches } from "../../base/near-matches.ts";
import type { WrittenServer } from "../../clients/agent-client.ts";
import { isInstalled } from "../../config/client-servers.ts";
import { findConfig, toolcribHome } from "../../config/find-config.ts";
import {
  gatewayCommand,
  planWrite,
  readTextIfPresent,
  readWrittenEntries,
  writeClientServers,
  type WritePlan,
  type WriteRequest,
} from "../../hub/clients/client-files.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../base/network-address.ts";
import {
  clientEnvironment,
  clientScope,
  fileToWriteFor,
  findClient,
  showClientDiff,
  withChangeSet,
} from "../client-config.ts";
import type { Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { userConfigFile } from "../config-target.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, env, flags, out } = invocation;
  const client = findClient(args[0] ?? "");
  const place = clientEnvironment(invocation);
  const file = fileToWriteFor(client, clientScope(invocation), place);
  const servers = await serversToWrite(invocation);
  const request: WriteRequest = { client, file, servers, replace: flags.has("force") };
  const home = toolcribHome(env);
  warnAboutPlainHttp(invocation);
  if (file.scope === "user" && !isInstalled(client, place)) {
    out.warn(`${client.name} does not seem to be installed here.`);
  }

  if (flags.has("dryRun")) {
    const before = await readTextIfPresent(file.path);
    const plan = planWrite(before, request, await readWrittenEntries(home));
    const after = plan.written.length === 0 ? before : plan.text;
    showClientDiff(invocation, client, { file: file.path, before, after }, factsOf(request, plan));
    return 0;
  }
  const plan = await withChangeSet(home, out, (changes) => writeClientServers({ ...request, changes, home }));
  if (out.json) {
    const facts = factsOf(request, plan);
    out.value({ ...facts, file: file.path, changed: plan.written.length > 0, afterChange: client.afterChange });
    return 0;
  }
  for (const id of plan.written) out.line(`Wrote ${id} into ${file.path}`);
  for (const id of plan.present) out.line(`Nothing to change: ${id} is in ${file.path} already.`);
  if (plan.written.length > 0) out.line(client.afterChange);
  return 0;
}

/** The whole catalog under the name `toolcrib`, or single servers under their own names. */
async function serversToWrite(invocation: Invocation): Promise<Record<string, WrittenServer>> {
  const { flags, env, cwd, out } = invocation;
  const url = flags.text("url");
  const ids = flags.list("server");
  if (url !== undefined) {
    // A hub at another address has servers of its own.
    return ids.length === 0
      ? { toolcrib: hubAddress(url) }
      : Object.fromEntries(ids.map((server) => [server, hubAddress(url, server)]));
  }
  const found = findConfig({ config: flags.text("config"), env, cwd });
  const configFile = userConfigFile(invocation);
  if (ids.length === 0) {
    if ("project" in found && found.project !== null) {
      const hint = "To have the client use that file alone, name it with --config.";
      out.warn(`${found.project} is not part of it: the client gets ${configFile}. ${hint}`);
    }
    return { toolcrib: gatewayCommand({ configFile, env }) };
  }
  const { project, servers } = await loadCommandConfig(invocation);
  assertKnown(ids, servers);
  const isProjects = (id: string): boolean => servers.some((spec) => spec.id === id && spec.fromProject === true);
  return Object.fromEntries(
    ids.map((server) => {
      const holder = isProjects(server) && project !== undefined ? project.file : configFile;
      return [server, gatewayCommand({ server, configFile: holder, env })];
    }),
  );
}

function assertKnown(ids: readonly string[], servers: readonly { readonly id: string }[]): void {
  const known = servers.map(({ id }) => id);
  for (const id of ids) {
    if (known.includes(id)) continue;
    const near = nearMatches(id, known);
    throw new ToolcribError("not_found", `There is no server "${id}".`, {
      hint: near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Known servers: ${known.join(", ") || "none"}.`,
    });
  }
}

function hubAddress(text: string, server?: string): WrittenServer {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--url takes the address of a running hub.", {
      hint: "`toolcrib serve` prints it: http://127.0.0.1:4700/mcp",
    });
  }
  if (server !== undefined) url.searchParams.set("servers", server);
  return { url: url.href, transport: url.pathname.endsWith("/sse") ? "sse" : "http" };
}

function warnAboutPlainHttp({ flags, out }: Invocation): void {
  // `addressOf` has parsed it by now.
  const url = new URL(flags.text("url") ?? "https://localhost");
  if (url.protocol !== "http:" || isLoopback(url.hostname)) return;
  out.warn(
    `${url.host} is addressed by plain http: anybody on the way can read and change what goes there. Use https.`,
  );
}

function factsOf({ client, file, servers }: WriteRequest, { written, present }: WritePlan): Record<string, unknown> {
  return { client: client.id, scope: file.scope, servers: Object.keys(servers), written, present };
}
