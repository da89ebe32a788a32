/** A call that waits, or several that are alike, with what one needs to decide. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { run } from "../../api.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { useNow } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { approvals } from "../../messages/approvals.ts";
import { t } from "../../messages/messages.ts";
import { queryClient, useOperation } from "../../state/queries.ts";
import { leftText } from "../../text.ts";
import {
  ANSWERED_WORDS,
  type AnswerWord,
  type CallGroup,
  type LastingWord,
  SCOPE_WORDS,
  scopesOf,
} from "./answer-words.ts";
import { Arguments, Asker, ChangedDefinition } from "./call-details.tsx";

interface CardProps {
  readonly group: CallGroup;
  /** The focus must not fall back to the top of the page when the card goes. */
  readonly onAnswered: () => void;
}

type Dialog = "always" | "trust" | undefined;

export function ApprovalCard({ group: { first: approval, all }, onAnswered }: CardProps) {
  const [dialog, setDialog] = useState<Dialog>();
  const scopes = scopesOf(approval);
  const [scope, setScope] = useState<LastingWord>(() => scopes[0] ?? "always");
  const now = useNow(1000);
  const left = Date.parse(approval.expiresAt) - now;
  const isChanged = approval.changed === true;
  const change = useMutation({
    mutationFn: async ({ answer, trust }: { readonly answer: AnswerWord; readonly trust?: boolean }) => {
      if (trust === true) {
        const { source: serverId, name: tool } = approval.origin;
        await run("changePins", {
          action: "approve",
          serverId,
          tool,
          kind: approval.kind === "prompt" ? "prompt" : "tool",
        });
      }
      await answerAll(all, answer);
      return answer;
    },
    onSuccess: (answer) => {
      setDialog(undefined);
      toast(t(approvals.answeredToast, { name: approval.name, answer: t(ANSWERED_WORDS[answer]) }));
      onAnswered();
    },
    onSettled: () => {
      for (const each of ["listApprovals", "getApproval", "overview", "listPins"])
        void queryClient.invalidateQueries({ queryKey: [each] });
    },
  });
  const answer = (word: AnswerWord): void => change.mutate({ answer: word });
  const buttons = { busy: change.isPending, disabled: left <= 0 };
  return (
    <article
      aria-labelledby={`approval-${approval.id}`}
      className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-panel p-4"
    >
      <div className="flex items-start justify-between gap-4">
        <h3 id={`approval-${approval.id}`} tabIndex={-1} className="min-w-0 font-mono font-semibold break-all">
          {approval.name}
        </h3>
        <Left milliseconds={left} />
      </div>
      {all.length > 1 && (
        <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
          <Badge tone="accent">{t(approvals.identical, { count: all.length })}</Badge>
          {t(approvals.identicalHow)}
        </p>
      )}
      {isChanged && <Change approval={approval} />}
      <Arguments approval={approval} canLoad />
      <Asker
        approval={approval}
        links={{
          server: (
            <Link to="/servers" search={{ server: approval.origin.source }} className="break-all text-accent underline">
              {approval.origin.source}
            </Link>
          ),
          session: <Sessions all={all} />,
        }}
      />
      {change.error !== null && dialog === undefined && <FailureBox error={change.error} />}
      <div
        role="group"
        aria-label={t(approvals.answer, { name: approval.name })}
        className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap"
      >
        <Button variant="primary" icon="close" {...buttons} onClick={() => answer("no")}>
          {t(approvals.deny)}
        </Button>
        <Button icon="check" {...buttons} onClick={() => answer("once")}>
          {t(approvals.allowOnce)}
        </Button>
        <Button {...buttons} onClick={() => answer("session")}>
          {t(approvals.forSession)}
        </Button>
        {scopes.length > 0 && (
          <Button {...buttons} onClick={() => setDialog("always")}>
            {t(approvals.alwaysButton)}
          </Button>
        )}
        {isChanged && (
          <Button {...buttons} onClick={() => setDialog("trust")}>
            {t(approvals.trustButton)}
          </Button>
        )}
      </div>
      <ConfirmDialog
        open={dialog === "always"}
        onOpenChange={() => setDialog(undefined)}
        title={t(approvals.alwaysTitle)}
        action={t(approvals.alwaysAction)}
        busy={change.isPending}
        error={change.error}
        onConfirm={() => answer(scope)}
      >
        <LastingScopes approval={approval} scope={scope} onScope={setScope} />
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === "trust"}
        onOpenChange={() => setDialog(undefined)}
        title={t(approvals.trustTitle)}
        action={t(approvals.trustButton)}
        busy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate({ answer: "once", trust: true })}
      >
        <RichText
          message={approvals.trustHow}
          values={{ name: <span className="font-mono break-all text-ink">{approval.name}</span> }}
        />
      </ConfirmDialog>
    </article>
  );
}

/** One that was answered or withdrawn meanwhile keeps no other from its answer. */
async function answerAll(all: readonly Approval[], answer: AnswerWord): Promise<void> {
  const ends = await Promise.allSettled(all.map(({ id }) => run("answerApproval", { approvalId: id, answer })));
  const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
  const serious = failures.find((error) => failureOf(error).code !== "not_found");
  if (serious !== undefined) throw serious;
  if (failures.length === all.length) throw failures[0];
}

function Change({ approval }: { readonly approval: Approval }) {
  const query = useOperation("getApproval", { approvalId: approval.id });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={3} label={t(approvals.loadingChange)} />}>
      {({ approval: { definition } }) =>
        definition === undefined ? (
          <p className="text-sm break-words text-soft">{approval.reason}</p>
        ) : (
          <ChangedDefinition change={definition} />
        )
      }
    </Loaded>
  );
}

/** The first part of an id tells sessions apart. */
const SHOWN_ID = 8;

function Sessions({ all }: { readonly all: readonly Approval[] }) {
  const ids = [...new Set(all.map(({ session }) => session.id))];
  return (
    <span className="flex flex-wrap gap-x-3">
      {ids.map((id) => (
        <Link key={id} to="/sessions" search={{ session: id }} title={id} className="font-mono text-accent underline">
          {id.slice(0, SHOWN_ID)}
        </Link>
      ))}
    </span>
  );
}

interface ScopesProps {
  readonly approval: Approval;
  readonly scope: LastingWord;
  readonly onScope: (scope: LastingWord) => void;
}

function LastingScopes({ approval, scope, onScope }: ScopesProps) {
  return (
    <fieldset className="flex flex-col gap-2">
      <legend>
        <RichText
          message={approvals.alwaysFor}
          values={{ name: <span className="font-mono break-all text-ink">{approval.name}</span> }}
        />
      </legend>
      {scopesOf(approval).map((word) => (
        <label key={word} className="flex items-baseline gap-2 text-ink">
          <input type="radio" name={`scope-${approval.id}`} checked={scope === word} onChange={() => onScope(word)} />
          <span className="min-w-0">
            {t(SCOPE_WORDS[word])}
            {approval.lasting?.[word] !== undefined && (
              <code className="block font-mono text-xs break-all text-soft">!{approval.lasting[word]}</code>
            )}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Left({ milliseconds }: { readonly milliseconds: number }) {
  if (milliseconds <= 0) return <Badge tone="bad">{t(approvals.timeUp)}</Badge>;
  return (
    <Badge tone={milliseconds < 30_000 ? "bad" : "warn"}>
      <span className="sr-only">{t(approvals.timeLeft)} </span>
      {leftText(milliseconds)}
      <span aria-hidden="true">{t(approvals.left)}</span>
    </Badge>
  );
}
