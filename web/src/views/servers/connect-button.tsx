import { Button } from "../../components/button.tsx";
import type { ServerState } from "../../components/state-dot.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { t } from "../../messages/messages.ts";
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
  const given = { serverId: server.id };
  const verb = server.sleeping === true ? "Wake" : "Connect";
  if (canConnect(server.state))
    return (
      <Button
        size="sm"
        icon="plug"
        busy={connect.isPending}
        aria-label={`${verb} ${server.name}`}
        onClick={() => connect.mutate(given, { onError: toastError })}
      >
        {verb}
      </Button>
    );
  if (!canDisconnect(server.state)) return null;
  return (
    <Button
      size="sm"
      busy={disconnect.isPending}
      aria-label={`Disconnect ${server.name}`}
      onClick={() =>
        disconnect.mutate(given, {
          onError: toastError,
          onSuccess: () =>
            toast(t(shell.disconnected, { server: server.name }), () => connect.mutate(given, { onError: toastError })),
        })
      }
    >
      Disconnect
    </Button>
  );
}
