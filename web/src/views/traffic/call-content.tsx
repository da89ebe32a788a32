/** Arguments and result of a call as the audit log has them, or why it does not. */
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { Code, CopyButton } from "../../components/code.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { RecordingButton } from "./recording.tsx";
import { recordedContent } from "./recorded-content.ts";

type Recorded = Pick<AuditEntry, "arguments" | "result" | "origin">;

export function CallContent({ entry }: { readonly entry: Recorded }) {
  if (entry.arguments === undefined && entry.result === undefined)
    return (
      <div className="flex flex-wrap items-center justify-between gap-2 rounded-md border border-line bg-sunken px-3 py-2">
        <p className="text-soft">{t(traffic.notRecorded)}</p>
        <RecordingButton server={entry.origin?.source} />
      </div>
    );
  return (
    <>
      <Part title={traffic.arguments} text={entry.arguments} />
      <Part title={traffic.result} text={entry.result} />
    </>
  );
}

function Part({ title, text }: { readonly title: Message; readonly text: string | undefined }) {
  const content = text === undefined ? undefined : recordedContent(text);
  return (
    <section aria-label={t(title)}>
      <div className="mb-1 flex min-h-7 items-center justify-between gap-2">
        <h3 className="font-semibold">{t(title)}</h3>
        {text !== undefined && <CopyButton text={text} />}
      </div>
      {content === undefined && <p className="text-soft">{t(traffic.notRecorded)}</p>}
      {content !== undefined && "cut" in content && (
        <>
          <Code text={content.cut} label={t(title)} wrap className="max-h-96" />
          <p className="mt-1 text-sm text-soft">{t(traffic.cut)}</p>
        </>
      )}
      {content !== undefined && "texts" in content && (
        <div className="flex flex-col gap-2">
          {content.texts.map((each, index) => (
            <Code key={index} text={each} label={t(title)} wrap className="max-h-96" />
          ))}
        </div>
      )}
      {content !== undefined && "value" in content && <JsonTree value={content.value} label={t(title)} depth={3} />}
    </section>
  );
}
