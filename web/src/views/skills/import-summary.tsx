/** The result of an import. */
import type { SkillFailure } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Icon } from "../../components/icon.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import type { ImportResult } from "./scan-choice.ts";

export function ImportSummary({ result, onDone }: { readonly result: ImportResult; readonly onDone: () => void }) {
  const { imported, unchanged, failed } = result;
  const lacking = imported.filter((skill) => !skill.dependenciesMet);
  const good = failed.length === 0;
  return (
    <section
      aria-label={t(skillWords.importResult)}
      role="status"
      className={`flex flex-col gap-2 rounded-lg border p-4 ${good ? "border-ok bg-ok-wash" : "border-warn bg-warn-wash"}`}
    >
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <Icon name={good ? "check" : "warning"} className={`size-5 ${good ? "text-ok" : "text-warn"}`} />
        <p className="min-w-0 flex-1 basis-52 font-medium">
          {[
            t(skillWords.importedCount, { count: imported.length }),
            ...(unchanged.length > 0 ? [t(skillWords.unchangedCount, { count: unchanged.length })] : []),
            ...(failed.length > 0 ? [t(skillWords.failedCount, { count: failed.length })] : []),
          ].join(" · ")}
        </p>
        <Button size="sm" onClick={onDone}>
          {t(skillWords.showSkills)}
        </Button>
      </div>
      {lacking.length > 0 && (
        <p className="text-sm break-words text-ink">
          {t(skillWords.lacking, {
            count: lacking.length,
            names: `${lacking
              .slice(0, 8)
              .map((skill) => skill.name)
              .join(", ")}${lacking.length > 8 ? " …" : ""}`,
          })}
        </p>
      )}
      {failed.length > 0 && <FailedSkills failed={failed} />}
    </section>
  );
}

export function FailedSkills({ failed }: { readonly failed: readonly SkillFailure[] }) {
  return (
    <ul
      aria-label={t(skillWords.failedSkills)}
      tabIndex={0}
      className="flex max-h-72 flex-col gap-2 overflow-y-auto -outline-offset-2"
    >
      {failed.map((failure) => (
        <li key={failure.path} className="text-ink">
          <div className="flex flex-wrap items-center gap-x-2">
            <span className="font-medium break-all">{failure.name}</span>
            <Badge tone="bad">{failure.code}</Badge>
          </div>
          <p className="text-sm break-words">{failure.message}</p>
          <p className="font-mono text-sm break-all text-soft">{failure.path}</p>
        </li>
      ))}
    </ul>
  );
}
