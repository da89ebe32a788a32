/** Everything that one needs to know of a waiting call: who asks, with what, by which rule, and what changed. */
import type { ReactNode } from "react";
import { useState } from "react";
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import type { DefinitionChange } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Icon } from "../../components/icon.tsx";
import { JsonTree, type Mark } from "../../components/json-tree.tsx";
import { KeyValues } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { approvals } from "../../messages/approvals.ts";
import { t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { RISK_WORDS, ruleParts, sessionText } from "./answer-words.ts";

interface AskerProps {
  readonly approval: Approval;
  /** Links to the server and to the session, where one may follow them. */
  readonly links?: { readonly server: ReactNode; readonly session: ReactNode };
}

export function Asker({ approval, links }: AskerProps) {
  const { session, origin, rule, reason, expiresAt, held } = approval;
  const { entry, where, looked } = ruleParts(rule);
  const facts = [
    ...(where === "" ? [] : [t(approvals.ruleWhere, { where })]),
    ...(looked.length === 0 ? [] : [t(approvals.looksAt, { names: looked.join(", ") })]),
  ];
  return (
    <div className="flex flex-col gap-2 text-sm">
      <KeyValues
        rows={[
          [t(approvals.askedBy), <span className="break-all">{sessionText(session)}</span>],
          [t(approvals.server), links?.server ?? <span className="font-mono break-all">{origin.source}</span>],
          ...(links === undefined ? [] : ([[t(approvals.sessionLabel), links.session]] as const)),
          ...(session.conversation === undefined
            ? []
            : ([
                [t(approvals.conversation), <code className="font-mono break-all">{session.conversation}</code>],
              ] as const)),
          [
            t(approvals.rule),
            <span title={reason}>
              <code className="font-mono break-all">{entry}</code>{" "}
              <span className="wrap-anywhere text-soft">{facts.join(", ")}</span>
            </span>,
          ],
          [
            t(approvals.waits),
            <RichText message={approvals.waitsUntil} values={{ time: <Time at={expiresAt} clock /> }} />,
          ],
        ]}
      />
      {held && <p className="text-soft">{t(approvals.held)}</p>}
    </div>
  );
}

interface ArgumentsProps {
  readonly approval: Approval;
  /** Asks the hub for all arguments; the page behind a link has them. */
  readonly canLoad?: boolean;
}

export function Arguments({ approval, canLoad = false }: ArgumentsProps) {
  const [whole, setWhole] = useState(false);
  const query = useOperation("getApproval", { approvalId: approval.id }, { enabled: whole });
  const { arguments: shown, risks = [] } = query.data?.approval ?? approval;
  const marks = risks.map(({ at, from, to, risk }): Mark => ({ at, from, to, label: t(RISK_WORDS[risk]) }));
  return (
    <div className="rounded-md border border-line bg-sunken px-3 py-2">
      {Object.keys(shown).length === 0 ? (
        <p className="text-sm text-soft">{t(approvals.noArguments)}</p>
      ) : (
        <JsonTree
          value={shown}
          label={t(approvals.arguments, { name: approval.name })}
          depth={10}
          keysOnly
          marks={marks}
        />
      )}
      {risks.length > 0 && (
        <p className="mt-2 flex flex-wrap items-center gap-1.5 border-t border-line pt-2 text-sm text-soft">
          <Icon name="warning" className="size-3.5 text-warn" />
          {t(approvals.lookAt)}
          {[...new Set(risks.map(({ risk }) => risk))].map((risk) => (
            <Badge key={risk} tone={risk === "rule" ? "info" : "warn"}>
              <span className="whitespace-normal">{t(RISK_WORDS[risk])}</span>
            </Badge>
          ))}
        </p>
      )}
      {canLoad && approval.shortened === true && query.data === undefined && (
        <Button size="sm" variant="ghost" busy={query.isFetching} onClick={() => setWhole(true)}>
          {t(approvals.allArguments)}
        </Button>
      )}
      {query.error !== null && <FailureBox error={query.error} onRetry={() => void query.refetch()} />}
    </div>
  );
}

type Side = DefinitionChange["changes"][number]["before"];

/** Both definitions beside each other; below each other where it is narrow. */
export function ChangedDefinition({ change }: { readonly change: DefinitionChange }) {
  return (
    <section className="flex flex-col gap-2 rounded-md border border-warn bg-warn-wash p-3">
      <h4 className="flex items-center gap-1.5 font-semibold">
        <Icon name="warning" className="size-4 text-warn" />
        {t(change.state === "new" ? approvals.new : approvals.changed)}
        {change.pinnedAt !== null && (
          <span className="font-normal text-soft">
            <Time at={change.pinnedAt} />
          </span>
        )}
      </h4>
      <p className="text-sm text-soft">{t(approvals.changedHow)}</p>
      {change.changes.map(({ place, before, after }) => (
        <div key={place} className="overflow-hidden rounded-md border border-line bg-panel">
          <h5 className="border-b border-line px-3 py-1 font-mono text-xs break-all text-soft">{place}</h5>
          <div className="grid divide-y divide-line sm:grid-cols-2 sm:divide-x sm:divide-y-0">
            <OneSide title={t(approvals.before)} side={before} tone="bg-bad-wash text-bad" Mark="del" />
            <OneSide title={t(approvals.now)} side={after} tone="bg-ok-wash text-ok" Mark="ins" />
          </div>
        </div>
      ))}
      {change.more > 0 && <p className="text-sm text-soft">{t(approvals.moreChanges, { count: change.more })}</p>}
    </section>
  );
}

interface SideProps {
  readonly title: string;
  readonly side: Side;
  readonly tone: string;
  readonly Mark: "del" | "ins";
}

function OneSide({ title, side, tone, Mark }: SideProps) {
  return (
    <div className="min-w-0 px-3 py-2">
      <div className="mb-0.5 text-xs text-faint">{title}</div>
      {side === null ? (
        <p className="text-sm text-soft italic">{t(approvals.nothing)}</p>
      ) : (
        <p className="max-h-72 overflow-y-auto font-mono text-sm break-words whitespace-pre-wrap" tabIndex={0}>
          {side.map(({ text, changed }, index) =>
            changed ? (
              <Mark key={index} className={`rounded-sm px-0.5 ${tone}`}>
                {text}
              </Mark>
            ) : (
              text
            ),
          )}
        </p>
      )}
    </div>
  );
}
