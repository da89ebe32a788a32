/** The skills that a scan found, with boxes to tick and the import. */
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { InputOf, OutputOf } from "../../../../src/contract/operations.ts";
import { run } from "../../api.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Checkbox, SearchBox, Select } from "../../components/fields.tsx";
import { Section, Toolbar } from "../../components/page.tsx";
import { Empty, FailureBox } from "../../components/states.tsx";
import { VirtualList } from "../../components/virtual-list.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { queryClient } from "../../state/queries.ts";
import { FailedSkills, ImportSummary } from "./import-summary.tsx";
import {
  canChoose,
  chosenOf,
  importsFor,
  joinResults,
  needsForce,
  SHOWN,
  type Shown,
  shownOf,
  tickAll,
  type Ticks,
} from "./scan-choice.ts";
import { ScannedLine } from "./scanned-line.tsx";

interface ScanResultsProps {
  readonly path: string;
  readonly found: OutputOf<"scanSkills">;
  readonly onDone: () => void;
}

export function ScanResults({ path, found, onDone }: ScanResultsProps) {
  const { skills, failed, totalScanned } = found;
  const [ticks, setTicks] = useState<Ticks>(new Map());
  const [force, setForce] = useState(false);
  const [which, setWhich] = useState<Shown>("all");
  const [text, setText] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState(false);
  const chosen = useMemo(() => chosenOf(skills, ticks, force), [skills, ticks, force]);
  const chosenPaths = useMemo(() => new Set(chosen.map((skill) => skill.path)), [chosen]);
  const shown = useMemo(() => shownOf(skills, which, text), [skills, which, text]);
  const forced = chosen.filter(needsForce);
  const blocked = skills.filter(needsForce).length;

  const importing = useMutation({
    mutationFn: async (inputs: readonly InputOf<"importSkills">[]) => {
      const results = [];
      for (const input of inputs) results.push(await run("importSkills", input));
      return joinResults(results);
    },
    onSuccess: () => {
      setTicks(new Map());
      setForce(false);
    },
    onSettled: () => {
      setAsking(false);
      for (const name of ["listSkills", "scanSkills", "overview"] as const)
        void queryClient.invalidateQueries({ queryKey: [name] });
    },
  });
  const importChosen = (): void => importing.mutate(importsFor(path, chosen));
  const toggle = (key: string): void => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };

  return (
    <>
      {importing.data !== undefined && <ImportSummary result={importing.data} onDone={onDone} />}
      {importing.error !== null && <FailureBox error={importing.error} />}
      <Section title={t(skillWords.foundCount, { count: totalScanned })} flush>
        <div className="flex flex-col gap-2 border-b border-line px-4 py-3">
          <Toolbar label={t(components.filters)}>
            <SearchBox
              label={t(skillWords.findAmong)}
              value={text}
              onChange={setText}
              className="min-w-44 flex-1 basis-full sm:max-w-80 sm:basis-auto"
            />
            <Select
              aria-label={t(skillWords.show)}
              className="max-sm:min-w-0 max-sm:flex-1"
              value={which}
              options={shownOptions(skills)}
              // The options are the keys of SHOWN.
              onChange={(value) => setWhich(value as Shown)}
            />
            <Button onClick={() => setTicks(tickAll(ticks, shown, true, force))}>{t(skillWords.selectAll)}</Button>
            <Button onClick={() => setTicks(tickAll(ticks, shown, false, force))}>{t(skillWords.selectNone)}</Button>
          </Toolbar>
          {blocked > 0 && (
            <div className="rounded-md border border-line bg-sunken px-3 py-2">
              <Checkbox
                label={t(skillWords.letMeChoose, { count: blocked })}
                checked={force}
                onChange={(event) => setForce(event.target.checked)}
              />
              <p className="mt-0.5 pl-6 text-sm text-soft">{t(skillWords.letMeChooseHow)}</p>
            </div>
          )}
        </div>
        {shown.length === 0 ? (
          <Empty title={t(skillWords.noneFit)} icon="search" />
        ) : (
          <VirtualList
            label={t(skillWords.foundSkills)}
            count={shown.length}
            lineHeight={88}
            className="max-h-[60dvh]"
            lineKey={(index) => shown[index]?.path ?? String(index)}
            line={(index) => {
              const skill = shown[index];
              if (skill === undefined) return null;
              return (
                <ScannedLine
                  skill={skill}
                  chosen={chosenPaths.has(skill.path)}
                  disabled={!canChoose(skill, force)}
                  open={open.has(skill.path)}
                  onToggle={() => toggle(skill.path)}
                  onChoose={(chosenNow) => setTicks(new Map(ticks).set(skill.path, chosenNow))}
                />
              );
            }}
          />
        )}
        <div className="sticky bottom-14 flex flex-wrap items-center justify-end gap-2 rounded-b-lg border-t border-line bg-panel px-4 py-3 md:bottom-0">
          <span aria-live="polite" className="mr-auto text-sm text-soft max-sm:sr-only">
            {t(skillWords.selectedCount, { count: chosen.length })}
          </span>
          <Button
            busy={importing.isPending}
            title={t(skillWords.importAllHow)}
            onClick={() => importing.mutate([{ path }])}
          >
            {t(skillWords.importAll)}
          </Button>
          <Button
            variant="primary"
            busy={importing.isPending}
            disabled={chosen.length === 0}
            onClick={() => (forced.length > 0 ? setAsking(true) : importChosen())}
          >
            {t(skillWords.importSelected, { count: chosen.length })}
          </Button>
        </div>
      </Section>
      {failed.length > 0 && (
        <Section title={t(skillWords.unreadable, { count: failed.length })}>
          <FailedSkills failed={failed} />
        </Section>
      )}
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t(skillWords.forceAsk, { count: forced.length })}
        action={t(skillWords.importAnyway)}
        danger
        busy={importing.isPending}
        onConfirm={importChosen}
      >
        <p>{t(skillWords.forceHow)}</p>
        <ul className="mt-1 max-h-40 list-disc overflow-y-auto pl-6">
          {forced.map((skill) => (
            <li key={skill.path} className="break-all">
              {skill.name}
            </li>
          ))}
        </ul>
      </ConfirmDialog>
    </>
  );
}

function shownOptions(skills: OutputOf<"scanSkills">["skills"]): readonly (readonly [Shown, string])[] {
  // Keys of SHOWN.
  return (Object.keys(SHOWN) as Shown[]).flatMap((key) => {
    const count = skills.filter((skill) => SHOWN[key].fits(skill)).length;
    return count === 0 && key !== "all" ? [] : [[key, `${t(SHOWN[key].word)} (${count})`] as const];
  });
}
