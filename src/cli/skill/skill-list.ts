/** `toolcrib skill list`: the imported skills, checked again, and those of the config's folders. */
import type { MissingNeeds } from "../../model/skill.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";
import { plain } from "./describe-skill.ts";
import { listSkills, type SkillStatus, withRegistry } from "./known-skills.ts";

const COLUMNS: readonly Column<SkillStatus>[] = [
  { title: "NAME", cell: ({ name }) => plain(name) },
  { title: "STATUS", cell: statusOf },
  { title: "SOURCE", cell: ({ source }) => source, shrink: true },
  { title: "DESCRIPTION", cell: ({ description }) => plain(description), shrink: true },
];

/** Names that two skills share say nothing; then the ids are shown. */
const ID_COLUMN: Column<SkillStatus> = { title: "ID", cell: ({ id }) => id };

export async function run(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const skills = await withRegistry(invocation, (registry) => listSkills(invocation, registry), { readsOnly: true });
  if (out.json) out.value(skills);
  else if (skills.length === 0) {
    out.note("No skill is imported or in skills.dirs. `toolcrib skill import <folder>` imports some.");
  } else {
    const shared = new Set(skills.map(({ name }) => name)).size < skills.length;
    const inOrder = skills.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    out.table(shared ? [...COLUMNS.slice(0, 1), ID_COLUMN, ...COLUMNS.slice(1)] : COLUMNS, inOrder);
    if (skills.some(({ outdated }) => outdated))
      out.note("`toolcrib skill update` brings those that are outdated up to date.");
  }
  return 0;
}

function statusOf({ missing, dependenciesMet, sourceState }: SkillStatus): string {
  const words = [dependenciesMet ? "ready" : `missing ${namesOf(missing)}`];
  if (sourceState === "changed") words.push("outdated");
  if (sourceState === "gone") words.push("source gone");
  return words.join(", ");
}

function namesOf({ bins, anyBins, env, config, os }: MissingNeeds): string {
  return [
    ...bins,
    ...(anyBins.length === 0 ? [] : [anyBins.join("|")]),
    ...env.map((name) => `$${name}`),
    ...config,
    ...(os.length === 0 ? [] : [os.join("|")]),
  ]
    .map((name) => plain(name))
    .join(" ");
}
