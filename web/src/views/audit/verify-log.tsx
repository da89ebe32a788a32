/** Checks the hash chains of the log, and says what came of it. */
import { useState } from "react";
import type { AuditVerdict } from "../../../../src/contract/activity-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { FailureBox, Skeleton } from "../../components/states.tsx";
import { useChange } from "../../state/queries.ts";
import { countText } from "../../text.ts";

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
        Verify
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title="Verify the log"
        description="Every record contains the hash of the previous one. A changed or removed record breaks the chain."
        footer={
          <Button busy={verify.isPending} icon="refresh" onClick={() => verify.mutate({})}>
            Check again
          </Button>
        }
      >
        {verify.isPending && <Skeleton lines={2} label="Checking" />}
        {!verify.isPending && verify.error !== null && <FailureBox error={verify.error} />}
        {!verify.isPending && verify.data !== undefined && <Verdict verdict={verify.data} />}
      </Dialog>
    </>
  );
}

function Verdict({ verdict }: { readonly verdict: AuditVerdict }) {
  const size = `${countText(verdict.records, "record")} in ${countText(verdict.chains, "chain")}`;
  return (
    <div
      role="status"
      className={`rounded-md border p-3 ${verdict.ok ? "border-ok bg-ok-wash" : "border-bad bg-bad-wash"}`}
    >
      <p className="flex items-center gap-2 font-medium">
        <Icon name={verdict.ok ? "check" : "warning"} className={`size-5 ${verdict.ok ? "text-ok" : "text-bad"}`} />
        {verdict.ok ? "The log is intact" : countText(verdict.problems.length, "problem")}
      </p>
      <p className="mt-0.5 pl-7 text-soft">{size} checked.</p>
      {verdict.problems.length > 0 && (
        <ul className="mt-2 list-disc pl-11">
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
