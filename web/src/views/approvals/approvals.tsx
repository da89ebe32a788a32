import { useRef } from "react";
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Page, Section } from "../../components/page.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { useOperation } from "../../state/queries.ts";
import { countText } from "../../text.ts";
import { ANSWERED_WORDS, sessionText } from "./answer-words.ts";
import { ApprovalCard } from "./approval-card.tsx";

export function ApprovalsView() {
  const pending = useOperation("listApprovals", { status: "pending", limit: 100 });
  const past = useOperation("listApprovals", { status: "all", limit: 100 });
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <Page title="Approvals" description="Calls that need your approval.">
      <section aria-labelledby="pending" className="flex flex-col gap-3">
        <h2 id="pending" ref={heading} tabIndex={-1} className="font-semibold">
          Waiting
        </h2>
        <div aria-live="polite" className="sr-only">
          {pending.data !== undefined && `${countText(pending.data.total, "call waits", "calls wait")} for an answer`}
        </div>
        <Loaded query={pending} skeleton={<Skeleton lines={5} label="Loading the approvals" />}>
          {({ approvals }) =>
            approvals.length === 0 ? (
              <div className="rounded-lg border border-line bg-panel">
                <Empty title="Nothing is waiting" icon="approvals">
                  Calls of tools under <code className="font-mono">tools.ask</code> in the config appear here
                  automatically.
                </Empty>
              </div>
            ) : (
              <div className="grid items-start gap-3 xl:grid-cols-2">
                {approvals.map((approval) => (
                  <ApprovalCard key={approval.id} approval={approval} onAnswered={() => heading.current?.focus()} />
                ))}
              </div>
            )
          }
        </Loaded>
      </section>
      <Section title="Answered" flush>
        <Loaded query={past} skeleton={<Skeleton lines={3} />}>
          {({ approvals }) => <Past approvals={approvals.filter((approval) => approval.status !== "pending")} />}
        </Loaded>
      </Section>
    </Page>
  );
}

function Past({ approvals }: { readonly approvals: readonly Approval[] }) {
  if (approvals.length === 0) return <Empty title="No answers yet" />;
  return (
    <ul className="divide-y divide-line">
      {approvals.map((approval) => (
        <li key={approval.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
          <span className="min-w-0 flex-1 basis-48 font-mono text-sm break-all">{approval.name}</span>
          <span className="text-sm text-soft">{sessionText(approval.session)}</span>
          <Badge
            tone={
              approval.answer === "no" || approval.answer === "timeout"
                ? "bad"
                : approval.answer === null || approval.answer === "withdrawn"
                  ? "neutral"
                  : "ok"
            }
          >
            {approval.answer === null ? "Expired" : ANSWERED_WORDS[approval.answer]}
          </Badge>
          <span className="text-sm text-faint">
            {approval.answeredBy !== null && `${approval.answeredBy}, `}
            <Time at={approval.answeredAt ?? approval.expiresAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}
