/** One skill: what it says, what it needs, what was found in it, and what agents get of it. */
import { useState } from "react";
import type { SkillDetail } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
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
      <Empty title="This skill does not exist" action={<Button onClick={onClose}>Back to the skills</Button>}>
        It may have been removed.
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label="Loading the skill" />}>
      {({ skill }) => (
        <>
          <DetailHeader skill={skill} onClose={onClose} />
          <Tabs
            label="About this skill"
            value={tab ?? "instructions"}
            onChange={onTab}
            tabs={[
              { id: "instructions", label: "Instructions", content: <InstructionsTab skillId={skill.id} /> },
              {
                id: "requirements",
                label: "Requirements",
                count: needsOf(skill.requires, skill.missing).length + skill.servers.length,
                content: <RequirementsTab skill={skill} />,
              },
              {
                id: "findings",
                label: "Findings",
                count: skill.findings.length + skill.warnings.length,
                content: <FindingsTab skill={skill} />,
              },
              { id: "files", label: "Files", count: skill.files.length, content: <FilesTab skill={skill} /> },
              { id: "injected", label: "What agents get", content: <InjectedTab skill={skill} /> },
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
      toast(`${name} was removed.`);
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
            <Badge tone="accent" title={KIND_TITLES[skill.kind]}>
              {KIND_WORDS[skill.kind]}
            </Badge>
            <Badge>{sourceWord(skill.source)}</Badge>
            {missing !== undefined && <Badge tone="warn">{missing}</Badge>}
            {skill.version !== undefined && <span>version {skill.version}</span>}
            {skill.author !== undefined && <span className="break-words">by {skill.author}</span>}
            {skill.importedAt !== undefined && (
              <span>
                imported <Time at={skill.importedAt} />
              </span>
            )}
          </div>
        </div>
        <IconButton label="Close the details" icon="close" onClick={onClose} />
      </div>
      <p className="break-words">{skill.description}</p>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="min-w-0 text-sm break-all text-soft">
          From <span className="font-mono">{skill.from}</span>
        </p>
        {skill.removable && (
          <Button size="sm" variant="danger" icon="trash" onClick={() => setAsking(true)}>
            Remove
          </Button>
        )}
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Remove ${skill.name}?`}
        action="Remove"
        danger
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ skillId: skill.id })}
      >
        The hub's copy is deleted and agents no longer get it. The folder that it was imported from is not changed.
      </ConfirmDialog>
    </div>
  );
}
