/** Checks the hash chains of the log, and says what came of it. */
import { useState } from "react";
import type { AuditVerdict } from "../../../../src/contract/activity-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { FailureBox, Skeleton } from "../../components/states.tsx";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { useChange } from "../../state/queries.ts";

export function VerifyLog() {
  const [open, setOpen] = useState(false);
  const verify = useChange("verifyAudit");
  return (
    <>
      <Button
        icon="approvals"
        onClick={() => {
          setOpen(true);
          verify.mutate({});
        }}
      >
        {t(audit.verify)}
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title={t(audit.verifyLog)}
        description={t(audit.verifyHow)}
        footer={
          <Button busy={verify.isPending} icon="refresh" onClick={() => verify.mutate({})}>
            {t(audit.checkAgain)}
          </Button>
        }
      >
        {verify.isPending && <Skeleton lines={2} label={t(audit.checking)} />}
        {!verify.isPending && verify.error !== null && <FailureBox error={verify.error} />}
        {!verify.isPending && verify.data !== undefined && <Verdict verdict={verify.data} />}
      </Dialog>
    </>
  );
}

function Verdict({ verdict }: { readonly verdict: AuditVerdict }) {
  return (
    <div
      role="status"
      className={`rounded-md border p-3 ${verdict.ok ? "border-ok bg-ok-wash" : "border-bad bg-bad-wash"}`}
    >
      <p className="flex items-center gap-2 font-medium">
        <Icon name={verdict.ok ? "check" : "warning"} className={`size-5 ${verdict.ok ? "text-ok" : "text-bad"}`} />
        {verdict.ok ? t(audit.intact) : t(audit.problems, { count: verdict.problems.length })}
      </p>
      <p className="mt-0.5 pl-8 text-soft">{t(audit.checked, { records: verdict.records, count: verdict.chains })}</p>
      {verdict.problems.length > 0 && (
        <ul className="mt-2 list-disc pl-12">
          {verdict.problems.map((problem, index) => (
            <li key={index} className="break-words">
              {problem}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
