/** Saves the log, as it is filtered, as a file. */
import { useState } from "react";
import { exportAudit } from "../../api.ts";
import { Button } from "../../components/button.tsx";
import { toastError } from "../../components/toast.tsx";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { type inputOf } from "./audit-filter.ts";

/** Long enough for any browser to have begun with it. */
const KEPT_MS = 60_000;

export function ExportLog({ input }: { readonly input: ReturnType<typeof inputOf> }) {
  const [busy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      const address = URL.createObjectURL(await exportAudit(input));
      const link = document.createElement("a");
      link.href = address;
      link.download = "toolcrib-audit.jsonl";
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button icon="download" busy={busy} onClick={() => void save()}>
      {t(audit.exportLog)}
    </Button>
  );
}
