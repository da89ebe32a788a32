import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import type { ServerState } from "../../components/state-dot.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { serverWords } from "../../messages/server-words.ts";
import { shell } from "../../messages/shell.ts";
import { useChange } from "../../state/queries.ts";
import { canConnect, canDisconnect } from "./server-words.ts";

interface ConnectButtonProps {
  readonly server: {
    readonly id: string;
    readonly name: string;
    readonly state: ServerState;
    readonly sleeping?: boolean | undefined;
  };
}

/** Connects or disconnects, whichever makes sense now. */
export function ConnectButton({ server }: ConnectButtonProps) {
  const outdates = ["listServers", "getServer", "overview"] as const;
  const connect = useChange("connectServer", { outdates });
  const disconnect = useChange("disconnectServer", { outdates });
  const [running, setRunning] = useState<number>();
  const given = { serverId: server.id };
  const [verb, named] =
    server.sleeping === true ? [serverWords.wake, serverWords.wakeServer] : [rules.connect, serverWords.connectServer];
  if (canConnect(server.state))
    return (
      <Button
        size="sm"
        icon="plug"
        busy={connect.isPending}
        aria-label={t(named, { server: server.name })}
        onClick={() => connect.mutate(given, { onError: toastError })}
      >
        {t(verb)}
      </Button>
    );
  if (!canDisconnect(server.state)) return null;
  const refused = (error: unknown): void => {
    const calls = callsInProgress(error);
    if (calls === undefined) toastError(error);
    else setRunning(calls);
  };
  const offerUndo = (): void =>
    toast(t(shell.disconnected, { server: server.name }), () => connect.mutate(given, { onError: toastError }));
  return (
    <>
      <Button
        size="sm"
        busy={disconnect.isPending}
        aria-label={t(serverWords.disconnectServer, { server: server.name })}
        onClick={() => disconnect.mutate({ ...given, ifIdle: true }, { onError: refused, onSuccess: offerUndo })}
      >
        {t(rules.disconnect)}
      </Button>
      <ConfirmDialog
        open={running !== undefined}
        onOpenChange={() => setRunning(undefined)}
        title={t(rules.runningTitle)}
        action={t(rules.disconnectAnyway)}
        danger
        busy={disconnect.isPending}
        onConfirm={() =>
          disconnect.mutate(given, {
            onError: toastError,
            onSuccess: offerUndo,
            onSettled: () => setRunning(undefined),
          })
        }
      >
        {t(rules.runningHow, { count: running ?? 0, server: server.name })}
      </ConfirmDialog>
    </>
  );
}

/** The number of calls because of which a server was not disconnected. */
export function callsInProgress(error: unknown): number | undefined {
  const { code, details } = failureOf(error);
  const calls = details?.["calls"];
  return code === "conflict" && typeof calls === "number" ? calls : undefined;
}
