import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { SkillDetail } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Code } from "../../components/code.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { bytesText } from "../../text.ts";
import { useOperation } from "../../state/queries.ts";
import { FindingsList, WarningsList } from "./findings-list.tsx";
import { needsOf } from "./skill-words.ts";

interface TabProps {
  readonly skill: SkillDetail;
}

export function InstructionsTab({ skillId }: { readonly skillId: string }) {
  const query = useOperation("getInstructions", { skillId });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(skillWords.loadingInstructions)} />}>
      {({ instructions }) =>
        instructions.trim() === "" ? (
          <Empty title={t(skillWords.noInstructions)} icon="skills">
            {t(skillWords.noInstructionsHow)}
          </Empty>
        ) : (
          <div
            // It scrolls, so it can be reached by keyboard.
            tabIndex={0}
            role="group"
            aria-label={t(skillWords.instructions)}
            className="max-h-[60dvh] overflow-y-auto p-4 -outline-offset-2"
          >
            <Markdown text={instructions} />
          </div>
        )
      }
    </Loaded>
  );
}

export function RequirementsTab({ skill }: TabProps) {
  const needs = needsOf(skill.requires, skill.missing);
  if (needs.length === 0 && skill.servers.length === 0)
    return (
      <Empty title={t(skillWords.noRequirements)} icon="check">
        {t(skillWords.noRequirementsHow)}
      </Empty>
    );
  const rows = [
    ...needs,
    ...skill.servers.map(({ name, present }) => ({ kind: t(skillWords.mcpServer), name, found: present })),
  ];
  return (
    <div className="flex flex-col gap-3 p-4">
      {rows.some((row) => !row.found) && <p className="text-soft">{t(skillWords.requirementsHow)}</p>}
      <ul aria-label={t(skillWords.requirements)} className="divide-y divide-line rounded-md border border-line">
        {rows.map(({ kind, name, found }) => (
          <li key={`${kind} ${name}`} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1.5">
            <span className="w-24 text-sm text-faint">{kind}</span>
            <span className="min-w-0 flex-1 font-mono text-sm break-all">{name}</span>
            <Badge tone={found ? "ok" : "warn"}>{t(found ? skillWords.found : skillWords.missing)}</Badge>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function FindingsTab({ skill }: TabProps) {
  if (skill.findings.length === 0 && skill.warnings.length === 0)
    return (
      <Empty title={t(skillWords.noFindings)} icon="check">
        {t(skillWords.noFindingsHow)}
      </Empty>
    );
  return (
    <div className="flex flex-col gap-4 p-4">
      {skill.findings.length > 0 && (
        <Part title={t(skillWords.inFiles)}>{<FindingsList findings={skill.findings} />}</Part>
      )}
      {skill.warnings.length > 0 && (
        <Part title={t(skillWords.whenRead)}>{<WarningsList warnings={skill.warnings} />}</Part>
      )}
    </div>
  );
}

export function FilesTab({ skill }: TabProps) {
  if (skill.files.length === 0) return <Empty title={t(skillWords.noFiles)} />;
  return (
    <ul aria-label={t(skillWords.files)} className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
      {skill.files.map((file) => (
        <li key={file.path} className="flex items-baseline gap-3 px-4 py-1.5">
          <span className="min-w-0 flex-1 font-mono text-sm break-all">{file.path}</span>
          <span className="text-sm whitespace-nowrap text-faint">{bytesText(file.size)}</span>
        </li>
      ))}
    </ul>
  );
}

export function InjectedTab({ skill }: TabProps) {
  return (
    <div className="flex flex-col gap-6 p-4">
      <Part title={t(skillWords.inPrompt)}>
        <p className="mb-2 text-soft">
          <RichText
            message={skillWords.inPromptHow}
            values={{ uri: <code className="font-mono break-all">{skill.uri}</code> }}
          />
        </p>
        <Code text={skill.promptEntry.trimEnd()} label={t(skillWords.promptEntry)} wrap />
      </Part>
      <Part title={t(skillWords.fromStart)}>
        {skill.injectedFor.length === 0 ? (
          <p className="text-soft">
            <RichText message={skillWords.fromStartNone} />
          </p>
        ) : (
          <div className="flex flex-wrap items-center gap-2 text-soft">
            {t(skillWords.fromStartFor)}
            {skill.injectedFor.map((role) => (
              <Badge key={role} tone="info">
                {role}
              </Badge>
            ))}
          </div>
        )}
      </Part>
      {skill.tools.length > 0 && (
        <Part title={t(skillWords.asTools)}>
          <ul className="flex flex-col gap-1">
            {skill.tools.map((tool) => (
              <li key={tool}>
                <Link to="/tools" search={{ tool }} className="font-mono text-sm break-all text-accent hover:underline">
                  {tool}
                </Link>
              </li>
            ))}
          </ul>
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1.5 font-semibold">{title}</h3>
      {children}
    </section>
  );
}
