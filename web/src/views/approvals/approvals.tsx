import { useRef } from "react";
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Switch } from "../../components/fields.tsx";
import { Page, Section } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { approvals } from "../../messages/approvals.ts";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { useNotifications, useSound } from "../../shell/attention.ts";
import { useOperation } from "../../state/queries.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { ANSWERED_WORDS, groupsOf, sessionText } from "./answer-words.ts";

export function ApprovalsView() {
  const pending = useOperation("listApprovals", { status: "pending", limit: 100 });
  const past = useOperation("listApprovals", { status: "all", limit: 100 });
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <Page title={t(shell.approvals)} description={t(approvals.description)} actions={<Attention />}>
      <section aria-labelledby="pending" className="flex min-w-0 flex-col gap-3">
        <h2 id="pending" ref={heading} tabIndex={-1} className="font-semibold">
          {t(approvals.waiting)}
        </h2>
        <div aria-live="polite" className="sr-only">
          {pending.data !== undefined && t(approvals.waitingCount, { count: pending.data.total })}
        </div>
        <Loaded query={pending} skeleton={<Skeleton lines={5} label={t(approvals.loading)} />}>
          {({ approvals: waiting }) =>
            waiting.length === 0 ? (
              <div className="rounded-lg border border-line bg-panel">
                <Empty title={t(approvals.none)} icon="approvals">
                  <RichText message={approvals.noneHow} />
                </Empty>
              </div>
            ) : (
              <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 xl:grid-cols-2">
                {groupsOf(waiting).map((group) => (
                  <ApprovalCard key={group.first.id} group={group} onAnswered={() => heading.current?.focus()} />
                ))}
              </div>
            )
          }
        </Loaded>
      </section>
      <Section title={t(approvals.answered)} flush>
        <Loaded query={past} skeleton={<Skeleton lines={3} />}>
          {({ approvals: all }) => <Past answered={all.filter(({ status }) => status !== "pending")} />}
        </Loaded>
      </Section>
    </Page>
  );
}

/** How this browser draws attention to calls that wait. */
function Attention() {
  const [sound, setSound] = useSound();
  const { state, ask, setOn } = useNotifications();
  return (
    <>
      <Switch label={t(approvals.sound)} checked={sound} onChange={setSound} />
      {state === "blocked" && <span className="text-sm text-soft">{t(approvals.notifyBlocked)}</span>}
      {state === "unasked" && (
        <Button size="sm" onClick={ask}>
          {t(approvals.notifyAsk)}
        </Button>
      )}
      {(state === "on" || state === "off") && (
        <Switch label={t(approvals.notify)} checked={state === "on"} onChange={setOn} />
      )}
    </>
  );
}

function Past({ answered }: { readonly answered: readonly Approval[] }) {
  if (answered.length === 0)
    return (
      <Empty title={t(approvals.noAnswers)} icon="approvals">
        {t(approvals.noAnswersHow)}
      </Empty>
    );
  return (
    <ul className="divide-y divide-line">
      {answered.map((approval) => (
        <li key={approval.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
          <span className="min-w-0 flex-1 basis-48 font-mono text-sm break-all">{approval.name}</span>
          <span className="min-w-0 text-sm break-all text-soft">{sessionText(approval.session)}</span>
          <Badge
            tone={
              approval.answer === "no" || approval.answer === "timeout"
                ? "bad"
                : approval.answer === null || approval.answer === "withdrawn"
                  ? "neutral"
                  : "ok"
            }
          >
            {t(approval.answer === null ? approvals.expired : ANSWERED_WORDS[approval.answer])}
          </Badge>
          <span className="text-sm text-faint">
            {approval.answeredBy !== null && t(approvals.by, { user: approval.answeredBy })}
            <Time at={approval.answeredAt ?? approval.expiresAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}
