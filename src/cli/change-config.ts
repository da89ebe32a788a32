/** Changes of rules and tokens from the command line, by the same way as the page: the diff, its effect, then the write. */
import type { ConfigChange, PlannedChange } from "../contract/change-schemas.ts";
import type { Hub } from "../hub/hub.ts";
import type { Invocation } from "./command.ts";

type Counts = PlannedChange["effect"]["roles"][number]["counts"];

/** Shows the diff and what follows from it, and writes it unless `--dry-run` is given. */
export async function changeConfig(
  { out, flags }: Invocation,
  hub: Hub,
  changes: readonly ConfigChange[],
): Promise<PlannedChange> {
  const config = await hub.internals.changes();
  const planned = await config.preview(changes);
  const done = flags.has("dryRun") ? planned : await config.write(changes, planned.etag);
  if (out.json) {
    out.value(done);
    return done;
  }
  if (planned.diffs.length === 0) out.line("Nothing to change.");
  for (const { where, lines } of planned.diffs) {
    out.line(out.paint("bold", where));
    for (const line of lines) out.line(out.paintChange(line));
  }
  for (const { role, counts } of planned.effect.roles) {
    out.line(`${role === null ? "Without a role" : `Role ${role}`}: ${effectText(counts)}.`);
  }
  const { clients } = planned.effect;
  if (clients.length > 0) out.line(`Connected clients that this concerns: ${clients.map(clientText).join(", ")}.`);
  for (const { name, verdict, rule } of planned.unmet) {
    const because = rule === null ? "" : `, because of ${rule.list} "${rule.pattern}" in ${rule.where}`;
    out.warn(`${name} is still decided as ${verdict}${because}.`);
  }
  for (const note of planned.notes) out.warn(note);
  if (!done.saved) out.note("Nothing was written.");
  return done;
}

const PARTS: readonly (readonly [keyof Counts, string])[] = [
  ["loses", "fewer"],
  ["gains", "more"],
  ["asks", "that now need approval"],
  ["frees", "that no longer need approval"],
];

function effectText(counts: Counts): string {
  return PARTS.filter(([key]) => counts[key] > 0)
    .map(([key, words]) => `${counts[key]} ${counts[key] === 1 ? "tool" : "tools"} ${words}`)
    .join(", ");
}

function clientText({ client, user, session }: PlannedChange["effect"]["clients"][number]): string {
  return `${client ?? "a client"} (${user ?? session.slice(0, 8)})`;
}
