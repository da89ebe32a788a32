/** One skill: what it says, what it needs, what was found in it, and what agents get of it. */
import { useState } from "react";
import type { SkillDetail } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { FilesTab, FindingsTab, InjectedTab, InstructionsTab, RequirementsTab } from "./skill-tabs.tsx";
import { KIND_TITLES, KIND_WORDS, missingText, needsOf, sourceWord } from "./skill-words.ts";

interface DetailProps {
  readonly skillId: string;
  readonly tab: string | undefined;
  readonly onTab: (tab: string) => void;
  readonly onClose: () => void;
}

export function SkillDetailPanel({ skillId, tab, onTab, onClose }: DetailProps) {
  const query = useOperation("getSkill", { skillId });
  if (query.data === undefined && query.error !== null && failureOf(query.error).code === "not_found")
    return (
      <Empty title={t(skillWords.gone)} action={<Button onClick={onClose}>{t(skillWords.back)}</Button>}>
        {t(skillWords.goneHow)}
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(skillWords.loadingOne)} />}>
      {({ skill }) => (
        <>
          <DetailHeader skill={skill} onClose={onClose} />
          <Tabs
            label={t(skillWords.about)}
            value={tab ?? "instructions"}
            onChange={onTab}
            tabs={[
              {
                id: "instructions",
                label: t(skillWords.instructions),
                content: <InstructionsTab skillId={skill.id} />,
              },
              {
                id: "requirements",
                label: t(skillWords.requirements),
                count: needsOf(skill.requires, skill.missing).length + skill.servers.length,
                content: <RequirementsTab skill={skill} />,
              },
              {
                id: "findings",
                label: t(skillWords.findings),
                count: skill.findings.length + skill.warnings.length,
                content: <FindingsTab skill={skill} />,
              },
              {
                id: "files",
                label: t(skillWords.files),
                count: skill.files.length,
                content: <FilesTab skill={skill} />,
              },
              { id: "injected", label: t(skillWords.whatAgentsGet), content: <InjectedTab skill={skill} /> },
            ]}
          />
        </>
      )}
    </Loaded>
  );
}

function DetailHeader({ skill, onClose }: { readonly skill: SkillDetail; readonly onClose: () => void }) {
  const [asking, setAsking] = useState(false);
  const remove = useChange("removeSkill", {
    outdates: ["listSkills", "overview"],
    onSuccess: ({ name }) => {
      toast(t(skillWords.removed, { name }));
      onClose();
    },
  });
  const missing = missingText(needsOf(skill.requires, skill.missing));
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="text-lg font-semibold break-words">{skill.name}</h2>
          <div className="mt-0.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-soft">
            <Badge tone="accent" title={t(KIND_TITLES[skill.kind])}>
              {t(KIND_WORDS[skill.kind])}
            </Badge>
            <Badge>{sourceWord(skill.source)}</Badge>
            {missing !== undefined && <Badge tone="warn">{missing}</Badge>}
            {skill.version !== undefined && <span>{t(skillWords.version, { version: skill.version })}</span>}
            {skill.author !== undefined && (
              <span className="break-words">{t(skillWords.byAuthor, { author: skill.author })}</span>
            )}
            {skill.importedAt !== undefined && (
              <span>
                <RichText message={skillWords.importedAt} values={{ time: <Time at={skill.importedAt} /> }} />
              </span>
            )}
          </div>
        </div>
        <IconButton label={t(components.closeDetails)} icon="close" onClick={onClose} />
      </div>
      <p className="break-words">{skill.description}</p>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="min-w-0 text-sm break-all text-soft">
          <RichText message={skillWords.from} values={{ place: <span className="font-mono">{skill.from}</span> }} />
        </p>
        {skill.removable && (
          <Button size="sm" variant="danger" icon="trash" onClick={() => setAsking(true)}>
            {t(skillWords.remove)}
          </Button>
        )}
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t(skillWords.removeAsk, { name: skill.name })}
        action={t(skillWords.remove)}
        danger
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ skillId: skill.id })}
      >
        {t(skillWords.removeHow)}
      </ConfirmDialog>
    </div>
  );
}
