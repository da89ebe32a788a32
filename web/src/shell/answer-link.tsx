/** The page behind a link of a notice: it shows the call, and answers it when the person says so. No login is needed. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { answerByLink, readLink } from "../api.ts";
import { BASE } from "../base.ts";
import { Button } from "../components/button.tsx";
import { RichText } from "../components/rich-text.tsx";
import { FailureBox, Loaded, Skeleton } from "../components/states.tsx";
import { approvals } from "../messages/approvals.ts";
import { t } from "../messages/messages.ts";
import { ANSWERED_WORDS } from "../views/approvals/answer-words.ts";
import { Arguments, Asker, ChangedDefinition } from "../views/approvals/call-details.tsx";

export function AnswerLink({ token }: { readonly token: string }) {
  const link = useQuery({ queryKey: ["approval-link"], queryFn: () => readLink(token), retry: false });
  const change = useMutation({ mutationFn: () => answerByLink(token) });
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-2xl flex-col gap-4 p-4">
      <div className="flex items-center gap-2 pt-2">
        <img src={`${BASE}/icon.svg`} alt="" width="26" height="26" />
        <h1 className="text-xl font-semibold">{t(approvals.linkTitle)}</h1>
      </div>
      {change.data === undefined ? (
        <Loaded query={link} skeleton={<Skeleton lines={6} label={t(approvals.linkLoading)} />}>
          {({ approval, answer, notice }) => (
            <article
              aria-label={approval.name}
              className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-panel p-4"
            >
              <h2 className="text-lg font-semibold">
                {t(answer === "once" ? approvals.linkAllow : approvals.linkDeny)}
              </h2>
              <p className="font-mono font-semibold break-all">{approval.name}</p>
              {approval.definition !== undefined && <ChangedDefinition change={approval.definition} />}
              <Arguments approval={approval} />
              <Asker approval={approval} />
              <p className="text-sm text-soft">
                <RichText
                  message={approvals.linkHow}
                  values={{ notice: <code className="font-mono">{notice}</code> }}
                />
              </p>
              {change.error !== null && <FailureBox error={change.error} />}
              <div>
                <Button variant="primary" busy={change.isPending} onClick={() => change.mutate()}>
                  {t(answer === "once" ? approvals.allowOnce : approvals.deny)}
                </Button>
              </div>
            </article>
          )}
        </Loaded>
      ) : (
        <section role="status" className="rounded-lg border border-line bg-panel p-4">
          <p className="font-semibold">{t(ANSWERED_WORDS[change.data.answer])}</p>
          <p className="mt-1 text-soft">{t(approvals.linkDone)}</p>
        </section>
      )}
      <a href={`${BASE}/approvals`} className="text-accent underline">
        {t(approvals.linkAll)}
      </a>
    </main>
  );
}
