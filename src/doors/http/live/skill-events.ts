/** Skills that were imported or removed, under both families of names. */
import type { Fields, Tell } from "./feed-event.ts";
import type { FeedEvents, FeedHub } from "./feed-hub.ts";

export function tellSkills(hub: FeedHub, tell: Tell): (() => void)[] {
  return [
    hub.on("skill-import", (event) => tellImport(event, tell)),
    hub.on("skill-remove", ({ skillId, name }) => {
      for (const type of ["skills.import.removed", "openclaw.import.removed"] as const) {
        tell(type, { skillId, name }, { skill: name });
      }
    }),
    hub.on("skills", () => tell("skills.changed", {})),
  ];
}

function tellImport({ single, result }: FeedEvents["skill-import"], tell: Tell): void {
  const { imported, failed, totalScanned } = result;
  if (!single) {
    const fields: Fields<"skills.batch.imported"> = { imported, failed, totalScanned };
    tell("skills.batch.imported", fields);
    tell("openclaw.batch.imported", fields);
    return;
  }
  for (const { skillId, name, warnings, dependenciesMet } of imported) {
    const fields: Fields<"skills.skill.imported"> = { skillId, name, warnings, dependenciesMet };
    tell("skills.skill.imported", fields, { skill: name });
    tell("openclaw.skill.imported", fields, { skill: name });
  }
}
