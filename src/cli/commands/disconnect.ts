import { rmdir } from "node:fs/promises";
import type { AgentClient, ClientFile } from "../../clients/agent-client.ts";
import { toolcribHome } from "../../config/find-config.ts";
import {
  planRemove,
  readTextIfPresent,
  readWrittenEntries,
  removeClientServers,
  type RemovePlan,
  type RemoveRequest,
  WRITTEN_BY_CONNECT,
  type WrittenEntry,
} from "../../hub/clients/client-files.ts";
import {
  clientEnvironment,
  clientScope,
  fileToWriteFor,
  findClient,
  showClientDiff,
  withChangeSet,
} from "../client-config.ts";
import type { Invocation } from "../command.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, env, flags, out } = invocation;
  const client = findClient(args[0] ?? "");
  const file = fileToWriteFor(client, clientScope(invocation), clientEnvironment(invocation));
  const home = toolcribHome(env);
  const records = await readWrittenEntries(home);
  const request: RemoveRequest = { client, file, ids: idsFor(invocation, records, file), force: flags.has("force") };

  if (flags.has("dryRun")) {
    const before = await readTextIfPresent(file.path);
    const plan = planRemove(before, request, records);
    showClientDiff(invocation, client, { file: file.path, before, after: plan.text }, factsOf(request, plan));
    return 0;
  }
  const plan = await withChangeSet(home, out, (changes) => removeClientServers({ ...request, changes, home }));
  // Fails, as it should, where something else is in the folder by now.
  for (const folder of plan.madeFolders.toReversed()) await rmdir(folder).catch(() => undefined);
  const changed = plan.removed.length > 0;
  if (out.json) out.value({ ...factsOf(request, plan), file: file.path, changed, afterChange: client.afterChange });
  else show(invocation, client, file, plan);
  for (const { id, reason } of plan.kept) {
    const why = reason === "edited" ? "was edited since Toolcrib wrote it" : "was not written by Toolcrib in this home";
    out.warn(`${file.path}: ${id} ${why}, and is kept. --force takes it out, if it starts Toolcrib.`);
  }
  return 0;
}

/** Without --server all that connect wrote; what skills brought goes with them. */
function idsFor({ flags, out }: Invocation, records: readonly WrittenEntry[], file: ClientFile): readonly string[] {
  const named = flags.list("server");
  if (named.length > 0) return named;
  const here = records.filter((entry) => entry.file === file.path && entry.scope === file.scope);
  const others = here.filter(({ by }) => by !== WRITTEN_BY_CONNECT).map(({ id }) => id);
  if (others.length > 0) out.note(`Brought by skills, and left: ${others.join(", ")}`);
  const ids = here.filter(({ by }) => by === WRITTEN_BY_CONNECT).map(({ id }) => id);
  return ids.length === 0 ? ["toolcrib"] : ids;
}

function show({ out }: Invocation, client: AgentClient, file: ClientFile, plan: RemovePlan): void {
  for (const id of plan.removed) out.line(`Took ${id} out of ${file.path}`);
  for (const id of plan.absent) out.line(`Nothing to do: ${id} is not in ${file.path}.`);
  if (plan.removed.length > 0) out.line(client.afterChange);
}

function factsOf({ client, file }: RemoveRequest, plan: RemovePlan): Record<string, unknown> {
  const { removed, kept, absent } = plan;
  return { client: client.id, scope: file.scope, removed, kept, absent };
}
