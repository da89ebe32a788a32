/** One server: what it is, what it offers, what it said, what happened to it. */
import { lazy, Suspense, useState } from "react";
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Switch } from "../../components/fields.tsx";
import { StateDot } from "../../components/state-dot.tsx";
import { Empty, FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { activity } from "../../messages/activity.ts";
import { t } from "../../messages/messages.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { LoginButton } from "../logins/login-button.tsx";
import { ConnectButton } from "./connect-button.tsx";
import { ConfigTab, HistoryTab } from "./detail-tabs.tsx";
import { FileServerActions } from "./file-server.tsx";
import { LogTab } from "./log-tab.tsx";
import { PromptsTab, ResourcesTab, ToolsTab } from "./offer-tabs.tsx";
import { PinsTab } from "./pins-tab.tsx";
import { EditServer } from "./server-dialog.tsx";
import { FROM_WORDS, fileName, TRANSPORT_WORDS } from "./server-words.ts";

/** With its charts it is as large as the rest of the view. */
const ActivityTab = lazy(async () => ({ default: (await import("./activity-tab.tsx")).ActivityTab }));

function Activity({ serverId }: { readonly serverId: string }) {
  return (
    <Suspense fallback={<Skeleton />}>
      <ActivityTab serverId={serverId} />
    </Suspense>
  );
}

interface DetailProps {
  readonly serverId: string;
  readonly tab: string | undefined;
  readonly onTab: (tab: string) => void;
  readonly onClose: () => void;
}

export function ServerDetailPanel({ serverId, tab, onTab, onClose }: DetailProps) {
  const query = useOperation("getServer", { serverId });
  if (query.data === undefined && query.error !== null && failureOf(query.error).code === "not_found")
    return (
      <Empty title="This server does not exist" action={<Button onClick={onClose}>Back to the servers</Button>}>
        It may have been removed.
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} />}>
      {({ server }) => (
        <>
          <DetailHeader server={server} onClose={onClose} />
          <Tabs
            label="About this server"
            value={tab ?? "tools"}
            onChange={onTab}
            tabs={[
              { id: "tools", label: "Tools", count: server.toolCount, content: <ToolsTab serverId={server.id} /> },
              {
                id: "resources",
                label: "Resources",
                count: server.resourceCount,
                content: <ResourcesTab serverId={server.id} />,
              },
              {
                id: "prompts",
                label: "Prompts",
                count: server.promptCount,
                content: <PromptsTab serverId={server.id} />,
              },
              { id: "pins", label: "Pins", content: <PinsTab serverId={server.id} /> },
              { id: "activity", label: t(activity.activity), content: <Activity serverId={server.id} /> },
              { id: "log", label: t(activity.log), content: <LogTab serverId={server.id} /> },
              { id: "history", label: "History", content: <HistoryTab server={server} /> },
              { id: "config", label: "Config", content: <ConfigTab server={server} /> },
            ]}
          />
        </>
      )}
    </Loaded>
  );
}

function DetailHeader({ server, onClose }: { readonly server: ServerDetail; readonly onClose: () => void }) {
  const [open, setOpen] = useState<"edit" | "remove">();
  const enable = useChange("updateServer", { outdates: ["listServers", "getServer"] });
  const remove = useChange("removeServer", {
    outdates: ["listServers", "overview"],
    onSuccess: () => {
      toast(`${server.name} was removed.`);
      onClose();
    },
  });
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="text-lg font-semibold break-words">{server.name}</h2>
          <div className="mt-0.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
            <StateDot state={server.state} sleeping={server.sleeping} />
            {server.name !== server.id && <span className="font-mono">{server.id}</span>}
            <Badge>{TRANSPORT_WORDS[server.transport]}</Badge>
            {server.node !== undefined && <span>on {server.node}</span>}
            {server.serverVersion !== null && <span>version {server.serverVersion}</span>}
            {server.connectedAt !== null && (
              <span>
                connected <Time at={server.connectedAt} />
              </span>
            )}
            {server.restart !== undefined && (
              <span>
                try {server.restart.attempt} <Time at={server.restart.nextAt} />
              </span>
            )}
            {server.tags.map((tag) => (
              <Badge key={tag} tone="accent">
                {tag}
              </Badge>
            ))}
          </div>
        </div>
        <IconButton label="Close the details" icon="close" onClick={onClose} />
      </div>
      <div className="flex flex-wrap items-center gap-2">
        {server.auth?.type === "oauth" && (
          <LoginButton serverId={server.id} again={server.auth.state !== "login_needed"} />
        )}
        <ConnectButton server={server} />
        {server.from === "file" && <FileServerActions server={server} onRemoved={onClose} />}
        {server.editable && (
          <>
            <Button size="sm" icon="edit" onClick={() => setOpen("edit")}>
              Edit
            </Button>
            <Button size="sm" variant="danger" icon="trash" onClick={() => setOpen("remove")}>
              Remove
            </Button>
            <Switch
              label="Enabled"
              checked={server.enabled}
              disabled={enable.isPending}
              onChange={(enabled) =>
                enable.mutate(
                  { serverId: server.id, updates: { enabled }, ifMatch: server.etag },
                  { onError: toastError },
                )
              }
            />
          </>
        )}
      </div>
      {!server.editable && server.from !== "file" && (
        <p className="text-sm text-soft">
          {FROM_WORDS[server.from]}: it is changed in{" "}
          <code className="font-mono break-all" title={server.origin.file}>
            {fileName(server.origin.file)}
          </code>
          , not here.
        </p>
      )}
      {server.progress !== undefined && (
        <p className="text-sm text-soft" role="status">
          {server.progress}
        </p>
      )}
      {server.lastError !== null && <FailureBox error={{ code: "", message: server.lastError, hint: server.hint }} />}
      {server.warnings.map((warning) => (
        <p key={warning} className="rounded-md bg-warn-wash px-3 py-2 text-sm text-warn">
          {warning}
        </p>
      ))}
      {open === "edit" && <EditServer server={server} onClose={() => setOpen(undefined)} />}
      <ConfirmDialog
        open={open === "remove"}
        onOpenChange={(shown) => setOpen(shown ? "remove" : undefined)}
        title={`Remove ${server.name}?`}
        action="Remove"
        danger
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ serverId: server.id, ifMatch: server.etag })}
      >
        All agents lose its tools immediately, and its entry is deleted from the hub’s store.
      </ConfirmDialog>
    </div>
  );
}
