/** `toolcrib skill remove <name>`: takes out what was installed, or only the imported skill. */
import { planRemoval, type RemovalPlan, type RemovalReport, removeSkill } from "../../hub/install/remove-skill.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import type { Invocation } from "../command.ts";
import { plain } from "./describe-skill.ts";
import { abortOnSignals, chosenClients, installPlaceFor } from "./skill-install.ts";
import { withRegistry } from "./known-skills.ts";

export function run(invocation: Invocation): Promise<number> {
  return abortOnSignals(invocation.out, (signal) =>
    withRegistry(invocation, (registry) => remove(invocation, registry, signal)),
  );
}

async function remove(invocation: Invocation, registry: SkillRegistry, signal: AbortSignal): Promise<number> {
  const { args, flags, out } = invocation;
  const [name] = args;
  if (name === undefined || args.length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one skill to remove.", {
      hint: "toolcrib skill list shows the names.",
    });
  }
  const clients = chosenClients(invocation).map(({ id }) => id);
  const place = await installPlaceFor(invocation, registry);
  const force = flags.has("force");
  const plan = await planRemoval(name, place, { clients, withServers: flags.has("withServers"), force });
  for (const { id, by } of plan.stillNeeded)
    out.note(`The server ${id} stays: ${by.map((each) => plain(each)).join(", ")} needs it.`);
  for (const id of plan.thereBefore) {
    out.note(`The server ${id} was there before this install, and stays; toolcrib remove ${id} takes it out.`);
  }
  if (flags.has("dryRun")) {
    showPlan(invocation, plan);
    return 0;
  }
  const report = await removeSkill(plan, place, { force, signal });
  for (const kept of report.kept) out.warn(`${kept} was left; --force removes it.`);
  for (const { path, copy } of plan.keptCopies) out.warn(`What was in ${path} before the install is kept in ${copy}.`);
  if (out.json) out.value({ ...report, restart: report.restart.map((client) => client.name) });
  else showRemoved(invocation, report);
  return 0;
}

function showRemoved({ out }: Invocation, report: RemovalReport): void {
  const { name, id, folders, files, restored, servers, secrets, clients, removed, restart } = report;
  const from = removed ? "" : ` from ${clients.length === 0 ? "no client: it was not there" : clients.join(", ")}`;
  out.line(`Removed ${plain(name)} (${id})${from}.`);
  for (const folder of folders) out.line(`  folder ${folder}`);
  for (const { file, ids } of files) out.line(`  ${ids.join(", ")} in ${file}`);
  for (const server of servers) out.line(`  server ${server}`);
  for (const secret of secrets) out.line(`  secret ${secret}`);
  for (const path of restored) out.line(`What was in ${path} before the install is there again.`);
  for (const { how } of restart) out.line(how);
}

function showPlan({ out }: Invocation, plan: RemovalPlan): void {
  const { id, name, folders, entries, servers, secrets, everywhere, clients } = plan;
  const restored = plan.restored.map(({ path }) => path);
  const names = { servers: servers.map((server) => server.id), secrets: secrets.map((secret) => secret.name) };
  if (out.json) {
    out.value({ dryRun: true, id, name, clients, removed: everywhere, folders, restored, entries, ...names });
    return;
  }
  if (everywhere) out.line(`Would remove ${plain(name)} (${id}).`);
  for (const folder of folders) out.line(`Would remove the folder ${folder}`);
  for (const path of restored) out.line(`Would put back what was in ${path} before the install`);
  for (const { file, ids } of entries) out.line(`Would take ${ids.join(", ")} out of ${file}`);
  for (const { id: server, file } of servers) out.line(`Would take the server ${server} out of ${file}`);
  for (const secret of names.secrets) out.line(`Would forget the secret ${secret}`);
}
