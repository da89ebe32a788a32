import { useId } from "react";
import type { ScannedSkill } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Icon } from "../../components/icon.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { FindingsList, WarningsList } from "./findings-list.tsx";
import { NeedsList } from "./needs-list.tsx";
import { findingsText, needsOf, osText, SEVERITY_WORDS, sourceWord, STATUS_WORDS, worst } from "./skill-words.ts";

interface ScannedLineProps {
  readonly skill: ScannedSkill;
  readonly chosen: boolean;
  readonly disabled: boolean;
  /** Its findings are shown. */
  readonly open: boolean;
  readonly onToggle: () => void;
  readonly onChoose: (chosen: boolean) => void;
}

export function ScannedLine({ skill, chosen, disabled, open, onToggle, onChoose }: ScannedLineProps) {
  const id = useId();
  const needs = needsOf(skill.requires, skill.missing);
  const status = STATUS_WORDS[skill.status];
  const remarks = skill.findings.length + skill.warnings.length;
  const severity = worst(skill.findings);
  return (
    <div className="flex gap-3 border-b border-line px-4 py-2">
      <input
        type="checkbox"
        aria-labelledby={`${id}-name`}
        aria-describedby={`${id}-text`}
        checked={chosen}
        disabled={disabled}
        onChange={(event) => onChoose(event.target.checked)}
        className="mt-1 size-4 shrink-0 accent-accent"
      />
      <div className="flex min-w-0 flex-1 flex-col gap-1.5">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span id={`${id}-name`} className="min-w-0 font-medium break-all">
            {skill.name}
          </span>
          <Badge tone={status.tone} title={t(status.meaning)}>
            {t(status.word)}
          </Badge>
          {skill.otherOs && (
            <Badge tone="warn" title={t(skillWords.forSystemHow)}>
              {t(skillWords.forSystem, { system: osText(skill.requires.os) })}
            </Badge>
          )}
          <Badge>{sourceWord(skill.source)}</Badge>
          {remarks > 0 && (
            <button
              type="button"
              aria-expanded={open}
              aria-controls={`${id}-found`}
              onClick={onToggle}
              className="inline-flex items-center gap-1 rounded-sm hover:bg-hover"
            >
              <Badge tone={severity === undefined ? "neutral" : SEVERITY_WORDS[severity].tone}>
                {severity === undefined
                  ? t(skillWords.warningsCount, { count: skill.warnings.length })
                  : findingsText(skill.findings)}
                <Icon name={open ? "down" : "right"} className="size-3" />
              </Badge>
              <span className="sr-only">{t(skillWords.of, { name: skill.name })}</span>
            </button>
          )}
        </div>
        <p id={`${id}-text`} className="line-clamp-2 text-sm break-words text-soft">
          {skill.description}
        </p>
        {needs.length > 0 && <NeedsList needs={needs} />}
        {remarks > 0 && open && (
          <div id={`${id}-found`} className="flex flex-col gap-2 rounded-md border border-line bg-sunken p-3">
            {skill.findings.length > 0 && <FindingsList findings={skill.findings} />}
            {skill.warnings.length > 0 && <WarningsList warnings={skill.warnings} />}
            <p className="font-mono text-sm break-all text-faint">{skill.path}</p>
          </div>
        )}
      </div>
    </div>
  );
}
