import { Link } from "@tanstack/react-router";
import type { SkillInfo } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { LINE_2_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { skillWords } from "../../messages/skill-words.ts";
import {
  sourceWord,
  findingsText,
  KIND_TITLES,
  KIND_WORDS,
  missingText,
  needsOf,
  SEVERITY_WORDS,
  worst,
} from "./skill-words.ts";

interface SkillListProps {
  readonly skills: readonly SkillInfo[];
  readonly chosen: string | undefined;
}

export function SkillList({ skills, chosen }: SkillListProps) {
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-panel">
      <VirtualList
        label={t(shell.skills)}
        count={skills.length}
        lineHeight={LINE_2_HEIGHT}
        fixed
        lineKey={(index) => skills[index]?.id ?? String(index)}
        className="max-h-[calc(100dvh-13rem)]"
        line={(index) => {
          const skill = skills[index];
          return skill === undefined ? null : <SkillLine skill={skill} chosen={skill.id === chosen} />;
        }}
      />
    </div>
  );
}

function SkillLine({ skill, chosen }: { readonly skill: SkillInfo; readonly chosen: boolean }) {
  const missing = missingText(needsOf(skill.requires, skill.missing));
  const severity = worst(skill.findings);
  return (
    <Link
      from="/skills"
      to="/skills"
      search={(old) => ({ ...old, skill: skill.id, tab: undefined })}
      aria-current={chosen ? "true" : undefined}
      className={`flex h-line-2 flex-col justify-center border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`}
    >
      <span className="flex items-center gap-2">
        <span className="truncate font-medium">{skill.name}</span>
        {skill.status === "broken" && <Badge tone="bad">{t(skillWords.broken)}</Badge>}
        {skill.status === "needs_setup" && (
          <Badge tone="warn" title={skill.setup}>
            {t(skillWords.needsSetup)}
          </Badge>
        )}
        {missing !== undefined && <Badge tone="warn">{missing}</Badge>}
        {severity !== undefined && <Badge tone={SEVERITY_WORDS[severity].tone}>{findingsText(skill.findings)}</Badge>}
        <span className="ml-auto flex shrink-0 items-center gap-2">
          <span className="hidden sm:inline">
            <Badge>{sourceWord(skill.source)}</Badge>
          </span>
          <Badge tone="accent" title={t(KIND_TITLES[skill.kind])}>
            {t(KIND_WORDS[skill.kind])}
          </Badge>
        </span>
      </span>
      <span className="truncate text-sm text-soft">{skill.description}</span>
    </Link>
  );
}
