/** The texts that the guard's findings in a call are about, on demand: they are attacks on whoever reads them. */
import { useState } from "react";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { FailureBox, Skeleton } from "../../components/states.tsx";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { numberText } from "../../text.ts";

type Passage = OutputOf<"listPassages">["passages"][number];

export function Passages({ callId }: { readonly callId: string }) {
  const [isShown, setShown] = useState(false);
  const found = useOperation("listPassages", { callId }, { enabled: isShown });
  return (
    <section>
      <div className="mb-1 flex items-center justify-between gap-2">
        <h3 className="font-semibold">{t(audit.suspicious)}</h3>
        <Button size="sm" onClick={() => setShown(!isShown)} aria-expanded={isShown}>
          {t(isShown ? audit.hide : audit.show)}
        </Button>
      </div>
      {!isShown ? (
        <p className="text-sm text-soft">{t(audit.misleading)}</p>
      ) : found.isPending ? (
        <Skeleton lines={2} />
      ) : found.isError ? (
        <FailureBox error={found.error} />
      ) : found.data.passages.length === 0 ? (
        <p className="text-sm text-soft">{t(audit.passagesGone)}</p>
      ) : (
        <ul className="flex flex-col gap-3">
          {found.data.passages.map((passage, index) => (
            <PassageItem key={index} passage={passage} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** Characters that no one sees are written out, and stand apart from the text around them. */
const HIDDEN = /(\\u\{[0-9A-Fa-f]+\})/;

function PassageItem({ passage }: { readonly passage: Passage }) {
  const { code, severity, place, score, rules, before, text, after } = passage;
  return (
    <li className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-center gap-1.5 text-sm text-soft">
        <Badge tone={severity === "high" ? "bad" : "warn"}>{code}</Badge>
        <span>{t(audit.passage, { place, score: numberText(score, 1), rules: rules.join(", ") })}</span>
      </div>
      <pre
        tabIndex={0}
        role="group"
        aria-label={t(audit.textOf, { code })}
        className="max-h-96 overflow-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm break-words whitespace-pre-wrap -outline-offset-2"
      >
        <span className="text-soft">
          <Visible text={before} />
        </span>
        <mark className="rounded-sm bg-warn-wash text-ink">
          <Visible text={text} />
        </mark>
        <span className="text-soft">
          <Visible text={after} />
        </span>
      </pre>
    </li>
  );
}

function Visible({ text }: { readonly text: string }) {
  return text.split(HIDDEN).map((part, index) =>
    index % 2 === 1 ? (
      <span key={index} className="rounded-sm border border-line-strong px-0.5 font-semibold text-ink">
        {part}
      </span>
    ) : (
      part
    ),
  );
}
