/** Actions on several servers at once. */
import { useState } from "react";
import { run } from "../../api.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { type ConfigChange, ReviewChange } from "../../components/review-change.tsx";
import { toastError } from "../../components/toast.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { queryClient } from "../../state/queries.ts";
import { callsInProgress } from "./connect-button.tsx";

interface ServerSelectionProps {
  readonly ids: readonly string[];
  readonly onClear: () => void;
}

export function ServerSelection({ ids, onClear }: ServerSelectionProps) {
  const [busy, setBusy] = useState<"connect" | "disconnect">();
  /** Servers that were not disconnected, with the number of their calls. */
  const [running, setRunning] = useState<ReadonlyMap<string, number>>(new Map());
  const [changes, setChanges] = useState<readonly ConfigChange[]>();
  const enable = (enabled: boolean): void =>
    setChanges(ids.map((serverId) => ({ kind: "server", serverId, updates: { enabled } })));
  const connect = async (): Promise<void> => {
    setBusy("connect");
    const all = await Promise.allSettled(ids.map((serverId) => run("connectServer", { serverId })));
    for (const each of all) if (each.status === "rejected") toastError(each.reason);
    done();
  };
  const disconnect = async (which: readonly string[], ifIdle: boolean): Promise<void> => {
    setBusy("disconnect");
    const waiting = new Map<string, number>();
    await Promise.all(
      which.map(async (serverId) => {
        try {
          await run("disconnectServer", { serverId, ifIdle });
        } catch (error) {
          const calls = callsInProgress(error);
          if (calls === undefined) toastError(error);
          else waiting.set(serverId, calls);
        }
      }),
    );
    setRunning(waiting);
    done();
  };
  const done = (): void => {
    setBusy(undefined);
    for (const each of ["listServers", "getServer", "overview"])
      void queryClient.invalidateQueries({ queryKey: [each] });
  };
  return (
    <div
      role="toolbar"
      aria-label={t(rules.selectedServers, { count: ids.length })}
      className="flex flex-wrap items-center gap-2 rounded-lg border border-line bg-accent-wash px-3 py-2"
    >
      <span className="mr-auto text-sm font-medium">{t(rules.selectedServers, { count: ids.length })}</span>
      <Button size="sm" busy={busy === "connect"} onClick={() => void connect()}>
        {t(rules.connect)}
      </Button>
      <Button size="sm" busy={busy === "disconnect"} onClick={() => void disconnect(ids, true)}>
        {t(rules.disconnect)}
      </Button>
      <Button size="sm" onClick={() => enable(true)}>
        {t(rules.enable)}
      </Button>
      <Button size="sm" onClick={() => enable(false)}>
        {t(rules.disable)}
      </Button>
      <Button size="sm" variant="ghost" icon="close" onClick={onClear}>
        {t(rules.clearSelection)}
      </Button>
      <ConfirmDialog
        open={running.size > 0}
        onOpenChange={() => setRunning(new Map())}
        title={t(rules.runningTitle)}
        action={t(rules.disconnectAnyway)}
        danger
        busy={busy === "disconnect"}
        onConfirm={() => void disconnect([...running.keys()], false)}
      >
        {[...running].map(([server, count]) => (
          <p key={server}>{t(rules.runningHow, { count, server })}</p>
        ))}
      </ConfirmDialog>
      {changes !== undefined && (
        <ReviewChange title={t(rules.review)} changes={changes} onClose={() => setChanges(undefined)} />
      )}
    </div>
  );
}
