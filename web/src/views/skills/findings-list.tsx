/** The findings of the scan of a skill, with file and line. */
import { Badge } from "../../components/badge.tsx";
import { t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";
import { byWeight, type Finding, SEVERITY_WORDS } from "./skill-words.ts";

export function FindingsList({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul aria-label={t(skillWords.findings)} className="flex flex-col gap-2">
      {byWeight(findings).map((finding, index) => (
        <li key={index} className="flex flex-wrap items-start gap-x-2 gap-y-0.5">
          <Badge tone={SEVERITY_WORDS[finding.severity].tone}>{t(SEVERITY_WORDS[finding.severity].word)}</Badge>
          <div className="min-w-0 flex-1 basis-60">
            <p className="break-words">{finding.message}</p>
            <p className="text-sm break-all text-faint">
              <span className="font-mono">
                {finding.file}
                {finding.line !== undefined && `:${finding.line}`}
              </span>
              {" · "}
              <span className="font-mono">{finding.code}</span>
            </p>
          </div>
        </li>
      ))}
    </ul>
  );
}

interface Warning {
  readonly code: string;
  readonly message: string;
  readonly line?: number | undefined;
}

export function WarningsList({ warnings }: { readonly warnings: readonly Warning[] }) {
  return (
    <ul aria-label={t(skillWords.warnings)} className="flex flex-col gap-2">
      {warnings.map((warning, index) => (
        <li key={index} className="flex flex-wrap items-start gap-x-2 gap-y-0.5">
          <Badge tone="warn">{t(skillWords.severityWarn)}</Badge>
          <div className="min-w-0 flex-1 basis-60">
            <p className="break-words">{warning.message}</p>
            <p className="font-mono text-sm break-all text-faint">
              {warning.line !== undefined && `${t(skillWords.atLine, { line: String(warning.line) })} · `}
              {warning.code}
            </p>
          </div>
        </li>
      ))}
    </ul>
  );
}
