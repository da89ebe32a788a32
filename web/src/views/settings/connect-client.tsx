/** Connects a client of the hub's machine, and takes that back. */
import type { ClientSnippet } from "../../../../src/contract/settings-schemas.ts";
import { Button } from "../../components/button.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { firstSteps } from "../../messages/first-steps.ts";
import { t } from "../../messages/messages.ts";
import { useChange } from "../../state/queries.ts";

type Client = Pick<ClientSnippet, "id" | "title" | "connected">;

export function ConnectClientButton({ client, onDone }: { readonly client: Client; readonly onDone?: () => void }) {
  const { id: clientId, title } = client;
  const outdates = ["clientSnippets"] as const;
  const disconnect = useChange("disconnectClient", {
    outdates,
    onSuccess: ({ next }) => toast(t(firstSteps.clientDisconnected, { client: title, next })),
  });
  const connect = useChange("connectClient", {
    outdates,
    onSuccess: ({ next }) => {
      onDone?.();
      toast(t(firstSteps.clientConnected, { client: title, next }), () =>
        disconnect.mutate({ clientId }, { onError: toastError }),
      );
    },
  });
  const act = client.connected ? disconnect : connect;
  const word = t(client.connected ? firstSteps.disconnect : firstSteps.connect);
  return (
    <Button
      size="sm"
      icon={client.connected ? undefined : "plug"}
      variant={client.connected ? "plain" : "primary"}
      busy={act.isPending}
      aria-label={`${word} ${title}`}
      onClick={() => act.mutate({ clientId }, { onError: toastError })}
    >
      {word}
    </Button>
  );
}
