/** A call that waits, with what one needs to decide. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { FailureBox } from "../../components/states.tsx";
import { useNow } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { useChange, useOperation } from "../../state/queries.ts";
import { leftText } from "../../text.ts";
import { ANSWERED_WORDS, type AnswerWord, type LastingWord, sessionText } from "./answer-words.ts";

interface CardProps {
  readonly approval: Approval;
  /** The focus must not fall back to the top of the page when the card goes. */
  readonly onAnswered: () => void;
}

export function ApprovalCard({ approval, onAnswered }: CardProps) {
  const [asking, setAsking] = useState(false);
  const [scope, setScope] = useState<LastingWord>(() => scopesOf(approval)[0] ?? "always");
  const now = useNow(1000);
  const left = Date.parse(approval.expiresAt) - now;
  const change = useChange("answerApproval", {
    outdates: ["listApprovals", "overview"],
    onSuccess: ({ answer }) => {
      setAsking(false);
      toast(`${approval.name}: ${ANSWERED_WORDS[answer].toLowerCase()}.`);
      onAnswered();
    },
  });
  const answer = (word: AnswerWord): void => change.mutate({ approvalId: approval.id, answer: word });
  const buttons = { busy: change.isPending, disabled: left <= 0 };
  return (
    <article
      aria-labelledby={`approval-${approval.id}`}
      className="flex flex-col gap-3 rounded-lg border border-line bg-panel p-4"
    >
      <div>
        <div className="flex items-start justify-between gap-4">
          <h3 id={`approval-${approval.id}`} tabIndex={-1} className="min-w-0 font-mono font-semibold break-all">
            {approval.name}
          </h3>
          <Left milliseconds={left} />
        </div>
        <p className="mt-0.5 text-sm text-soft">
          On{" "}
          <Link to="/servers" search={{ server: approval.origin.source }} className="text-accent underline">
            {approval.origin.source}
          </Link>
          , requested by {sessionText(approval.session)}
          {approval.held && ", which will have to call again after your answer"}.
        </p>
      </div>
      <Arguments approval={approval} />
      <p className="text-sm break-words text-soft">{approval.reason}</p>
      {change.error !== null && <FailureBox error={change.error} />}
      <div role="group" aria-label={`Answer ${approval.name}`} className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
        <Button variant="primary" icon="check" {...buttons} onClick={() => answer("once")}>
          Allow once
        </Button>
        <Button {...buttons} onClick={() => answer("session")}>
          For this session
        </Button>
        <Button {...buttons} onClick={() => setAsking(true)}>
          Always
        </Button>
        <Button variant="danger" icon="close" className="sm:ml-auto" {...buttons} onClick={() => answer("no")}>
          Deny
        </Button>
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Always allow this call?"
        action="Always allow"
        busy={change.isPending}
        error={change.error}
        onConfirm={() => answer(scope)}
      >
        <LastingScopes approval={approval} scope={scope} onScope={setScope} />
      </ConfirmDialog>
    </article>
  );
}

const SCOPES: Readonly<Record<LastingWord, string>> = {
  "always-call": "Exactly this call, with these arguments",
  "always-values": "This tool with these values of the arguments that the rule looks at",
  always: "This tool, whatever its arguments are",
};

/** The narrowest first. */
function scopesOf({ lasting = {} }: Approval): LastingWord[] {
  return (["always-call", "always-values", "always"] as const).filter((word) => lasting[word] !== undefined);
}

interface ScopesProps {
  readonly approval: Approval;
  readonly scope: LastingWord;
  readonly onScope: (scope: LastingWord) => void;
}

function LastingScopes({ approval, scope, onScope }: ScopesProps) {
  const scopes = scopesOf(approval);
  return (
    <fieldset className="flex flex-col gap-2">
      <legend>
        <span className="font-mono break-all text-ink">{approval.name}</span> will not need approval again for:
      </legend>
      {(scopes.length === 0 ? (["always"] as const) : scopes).map((word) => (
        <label key={word} className="flex items-baseline gap-2 text-ink">
          <input type="radio" name={`scope-${approval.id}`} checked={scope === word} onChange={() => onScope(word)} />
          <span className="min-w-0">
            {SCOPES[word]}
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
  if (milliseconds <= 0) return <Badge tone="bad">time is up</Badge>;
  return (
    <Badge tone={milliseconds < 30_000 ? "bad" : "warn"}>
      <span className="sr-only">Time left: </span>
      {leftText(milliseconds)}
      <span aria-hidden="true">left</span>
    </Badge>
  );
}

function Arguments({ approval }: { readonly approval: Approval }) {
  const [whole, setWhole] = useState(false);
  const query = useOperation("getApproval", { approvalId: approval.id }, { enabled: whole });
  const shown = query.data?.approval.arguments ?? approval.arguments;
  return (
    <div className="rounded-md border border-line bg-sunken px-3 py-2">
      {Object.keys(shown).length === 0 ? (
        <p className="text-sm text-soft">Without arguments</p>
      ) : (
        <JsonTree value={shown} label={`Arguments of ${approval.name}`} depth={10} keysOnly />
      )}
      {approval.shortened === true && query.data === undefined && (
        <Button size="sm" variant="ghost" busy={query.isFetching} onClick={() => setWhole(true)}>
          Show all arguments
        </Button>
      )}
      {query.error !== null && <FailureBox error={query.error} onRetry={() => void query.refetch()} />}
    </div>
  );
}
