/** One server: what it is, what it offers, what it said, what happened to it. */
import { lazy, Suspense, useState } from "react";
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Switch } from "../../components/fields.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { StateDot } from "../../components/state-dot.tsx";
import { Empty, FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { activity } from "../../messages/activity.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { serverWords } from "../../messages/server-words.ts";
import { shell } from "../../messages/shell.ts";
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
      <Empty title={t(serverWords.missing)} action={<Button onClick={onClose}>{t(serverWords.back)}</Button>}>
        {t(serverWords.missingHow)}
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} />}>
      {({ server }) => (
        <>
          <DetailHeader server={server} onClose={onClose} />
          <Tabs
            label={t(serverWords.about)}
            value={tab ?? "tools"}
            onChange={onTab}
            tabs={[
              {
                id: "tools",
                label: t(shell.tools),
                count: server.toolCount,
                content: <ToolsTab serverId={server.id} />,
              },
              {
                id: "resources",
                label: t(serverWords.resources),
                count: server.resourceCount,
                content: <ResourcesTab serverId={server.id} />,
              },
              {
                id: "prompts",
                label: t(serverWords.prompts),
                count: server.promptCount,
                content: <PromptsTab serverId={server.id} />,
              },
              { id: "pins", label: t(serverWords.pins), content: <PinsTab serverId={server.id} /> },
              { id: "activity", label: t(activity.activity), content: <Activity serverId={server.id} /> },
              { id: "log", label: t(activity.log), content: <LogTab serverId={server.id} /> },
              { id: "history", label: t(serverWords.history), content: <HistoryTab server={server} /> },
              { id: "config", label: t(serverWords.config), content: <ConfigTab server={server} /> },
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
      toast(t(serverWords.removed, { server: server.name }));
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
            {server.node !== undefined && <span>{t(serverWords.onNode, { node: server.node })}</span>}
            {server.serverVersion !== null && <span>{t(serverWords.version, { version: server.serverVersion })}</span>}
            {server.connectedAt !== null && (
              <span>
                <RichText message={serverWords.connectedSince} values={{ when: <Time at={server.connectedAt} /> }} />
              </span>
            )}
            {server.restart !== undefined && (
              <span>
                <RichText
                  message={serverWords.nextTry}
                  values={{ attempt: server.restart.attempt, when: <Time at={server.restart.nextAt} /> }}
                />
              </span>
            )}
            {server.tags.map((tag) => (
              <Badge key={tag} tone="accent">
                {tag}
              </Badge>
            ))}
          </div>
        </div>
        <IconButton label={t(serverWords.closeDetails)} icon="close" onClick={onClose} />
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
              {t(rules.edit)}
            </Button>
            <Button size="sm" variant="danger" icon="trash" onClick={() => setOpen("remove")}>
              {t(rules.remove)}
            </Button>
            <Switch
              label={t(rules.enabled)}
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
          <RichText
            message={serverWords.changedElsewhere}
            values={{
              from: t(FROM_WORDS[server.from]),
              file: (
                <code className="font-mono break-all" title={server.origin.file}>
                  {fileName(server.origin.file)}
                </code>
              ),
            }}
          />
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
        title={t(serverWords.removeAsk, { server: server.name })}
        action={t(rules.remove)}
        danger
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ serverId: server.id, ifMatch: server.etag })}
      >
        {t(serverWords.removeHow)}
      </ConfirmDialog>
    </div>
  );
}
