/** The result of connecting once with an unsaved entry. */
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { Code } from "../../components/code.tsx";
import { Icon } from "../../components/icon.tsx";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";

const SHOWN_TOOLS = 30;

export function TestResult({ result }: { readonly result: OutputOf<"testServer"> }) {
  const { ok, tools, serverVersion, error, hint, stderr } = result;
  return (
    <div role="status" className={`rounded-md border p-3 ${ok ? "border-ok bg-ok-wash" : "border-bad bg-bad-wash"}`}>
      <p className="flex items-start gap-2 font-medium">
        <Icon name={ok ? "check" : "warning"} className={`mt-0.5 size-4 ${ok ? "text-ok" : "text-bad"}`} />
        <span className="min-w-0 break-words">
          {ok
            ? serverVersion === null
              ? t(serverWords.works, { count: tools.length })
              : t(serverWords.worksVersion, { count: tools.length, version: serverVersion })
            : (error ?? t(serverWords.connectionFailed))}
        </span>
      </p>
      {hint !== undefined && <p className="mt-1 pl-6 text-soft">{hint}</p>}
      {tools.length > 0 && (
        <p className="mt-1 pl-6 font-mono text-sm break-words text-soft">
          {tools.slice(0, SHOWN_TOOLS).join(", ")}
          {tools.length > SHOWN_TOOLS && ` ${t(serverWords.andMore, { count: tools.length - SHOWN_TOOLS })}`}
        </p>
      )}
      {stderr.length > 0 && (
        <details className="mt-2 pl-6" open={!ok}>
          <summary className="text-soft">{t(serverWords.stderr)}</summary>
          <Code text={stderr.join("\n")} label={t(serverWords.stderr)} wrap className="mt-1 max-h-48" />
        </details>
      )}
    </div>
  );
}
