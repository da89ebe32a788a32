/** What an install is about to start, as a person reads it: everything that runs, and no secret. */
import { showHidden } from "../../guard/detect/show-hidden.ts";
import { type CheckedEntry, findingText } from "../../hub/install/check-entries.ts";
import { startedText } from "../../hub/install/launch.ts";
import type { TakenVariable } from "../../hub/install/parameters.ts";
import { ToolcribError } from "../../model/errors.ts";
import { findReferences } from "../../secrets/references.ts";
import type { Invocation } from "../command.ts";
import { canAsk, confirm } from "./install-questions.ts";

/** Shows them, and asks whoever sits at the terminal. Throws `cancelled` for a no. */
export async function approveServers(
  invocation: Invocation,
  checked: readonly CheckedEntry[],
  taken: readonly TakenVariable[],
  signal: AbortSignal,
): Promise<void> {
  const { out, flags } = invocation;
  if (!out.json) {
    for (const { name, server } of taken) out.note(`${name} of your environment goes to the server ${server}.`);
    for (const each of checked) out.note(serverText(each));
  }
  for (const finding of checked.flatMap(({ findings }) => findings)) {
    if (finding.severity !== "note") out.warn(showHidden(`${finding.severity}: ${findingText(finding)}`));
  }
  if (checked.length === 0 || !canAsk(invocation) || flags.has("dryRun")) return;
  const ids = checked.map(({ id }) => id).join(", ");
  if (await confirm(invocation, `Set up and start ${ids}?`, signal)) return;
  throw new ToolcribError("cancelled", "Nothing was installed.");
}

function serverText({ id, entry }: Pick<CheckedEntry, "id" | "entry">): string {
  const { env = {}, headers = {}, cwd, url, command, sandbox } = entry;
  const image = typeof sandbox === "object" ? sandbox.image : undefined;
  const first =
    command !== undefined
      ? `is started with: ${startedText(entry)}`
      : url === undefined && image !== undefined
        ? `runs in a container of the image ${image}`
        : `is reached at ${url ?? ""}`;
  const lines = [
    `The server ${id} ${first}`,
    ...(cwd === undefined ? [] : [`  in the folder ${cwd}`]),
    ...Object.entries(env).map(([name, value]) => `  with the variable ${name}=${value}`),
    ...Object.entries(headers).map(([name, value]) => `  with the header ${name}: ${value}`),
  ];
  return lines.map((line) => showHidden(masked(line)).replaceAll(/[\r\n]+/g, "\\n")).join("\n");
}

function masked(text: string): string {
  const secrets = findReferences(text).filter(({ kind }) => kind === "secret");
  return secrets.reduce((all, { text: reference }) => all.replaceAll(reference, "***"), text);
}
