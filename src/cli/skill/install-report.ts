/** What an install did, or would do, as people and as programs read it. */
import type { InstallReport } from "../../hub/install/apply-install.ts";
import type { TakenVariable } from "../../hub/install/parameters.ts";
import type { FileChange, InstallPreview } from "../../hub/install/preview-install.ts";
import type { KeptFolder } from "../../hub/install/replaced-folders.ts";
import { clientById } from "../../clients/clients.ts";
import { showClientDiff } from "../clients/show-change.ts";
import type { Invocation } from "../command.ts";
import { maskCredential, showDiff } from "../config-target.ts";
import { diffLines } from "../diff.ts";
import { plain } from "./describe.ts";

const SHOWN_TOOLS = 8;

export function showReport({ out }: Invocation, report: InstallReport, taken: readonly TakenVariable[]): void {
  const { installed, servers, secrets, restart, warnings, replaced } = report;
  for (const warning of warnings) out.warn(warning);
  if (out.json) {
    const names = restart.map(({ name }) => name);
    out.value({ installed, servers, secrets, environment: taken, restart: names, replaced });
    return;
  }
  for (const { name, id, clients } of installed) {
    const where = clients.length === 0 ? "" : `, and for ${clients.map(clientName).join(", ")}`;
    out.line(`Installed ${out.paint("bold", plain(name))} as ${id}${where}.`);
  }
  for (const each of replaced) out.line(`  ${replacedText(each)}`);
  for (const { id, added, tools } of servers)
    out.line(`  server ${id} ${added ? "added" : "was there"}${toolsText(tools)}`);
  for (const name of secrets) out.line(`  secret ${name} stored`);
  for (const { how } of restart) out.line(how);
}

function replacedText({ path, replaced, comesBack }: KeptFolder): string {
  if ("link" in replaced) {
    const link = `${path} was a link to ${replaced.link}, which is untouched`;
    return comesBack ? `${link}; the link comes back when the skill is removed` : link;
  }
  const back = comesBack ? ", and comes back when the skill is removed" : "";
  return `what was in ${path} is kept in ${replaced.copy}${back}`;
}

function toolsText(tools: readonly string[]): string {
  if (tools.length === 0) return "";
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `, ${tools.length} tools: ${tools.slice(0, SHOWN_TOOLS).join(", ")}${more}`;
}

function clientName(id: string): string {
  return clientById(id)?.name ?? id;
}

export function showPreview(invocation: Invocation, preview: InstallPreview, taken: readonly TakenVariable[]): void {
  const { out } = invocation;
  const { skills, servers, secrets, files, folders, replaced } = preview;
  if (out.json) {
    out.value({
      dryRun: true,
      installed: skills,
      servers,
      secrets,
      environment: taken,
      folders,
      replaced,
      files: files.map((change) => ({ file: change.file, changed: change.before !== change.after, ...diffOf(change) })),
    });
    return;
  }
  for (const { name, id } of skills) out.line(`Would install ${plain(name)} as ${id}.`);
  for (const folder of folders) {
    const kept = replaced.includes(folder) ? ", and keep what is there now" : "";
    out.line(`Would write the folder ${folder}${kept}`);
  }
  for (const name of secrets) out.line(`Would store the secret ${name}`);
  for (const change of files) showChange(invocation, change);
}

export function showChange(invocation: Invocation, change: FileChange): void {
  const { file, before, after, client } = change;
  if (client === undefined) showDiff(invocation, file, before ?? "", after ?? "", {});
  else showClientDiff(invocation, client, { file, before, after }, {});
}

/** Another program's file may hold anything, so programs are told only that it changes. */
function diffOf({ before, after, client }: FileChange): { diff?: string[] } {
  return client === undefined ? { diff: diffLines(before ?? "", after ?? "").map(maskCredential) } : {};
}
