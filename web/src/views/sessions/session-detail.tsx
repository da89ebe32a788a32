/** One session: who it is, what it sees, what tainted it; and its end. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { SessionDetail } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyValues } from "../../components/page.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { SkillsTab, ToolsTab } from "./session-tabs.tsx";
import { clientText, doorWord, taintText, whoText } from "./session-words.ts";

interface DetailProps {
  readonly sessionId: string;
  readonly tab: string | undefined;
  readonly onTab: (tab: string) => void;
  readonly onClose: () => void;
}

export function SessionDetailPanel({ sessionId, tab, onTab, onClose }: DetailProps) {
  const query = useOperation("getSession", { sessionId });
  if (query.data === undefined && query.error !== null && failureOf(query.error).code === "not_found")
    return (
      <Empty title="This session does not exist" action={<Button onClick={onClose}>Back to the sessions</Button>}>
        It has ended and is no longer stored.
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label="Loading the session" />}>
      {({ session }) => (
        <>
          <DetailHeader session={session} onClose={onClose} />
          <Tabs
            label="Contents of this session"
            value={tab ?? "tools"}
            onChange={onTab}
            tabs={[
              { id: "tools", label: "Tools", count: session.tools.length, content: <ToolsTab session={session} /> },
              {
                id: "skills",
                label: "Active skills",
                count: session.activeSkills.length,
                content: <SkillsTab session={session} />,
              },
            ]}
          />
        </>
      )}
    </Loaded>
  );
}

interface TaintNoteProps {
  readonly sessionId: string;
  readonly taint: NonNullable<SessionDetail["taint"]>;
  readonly isOpen: boolean;
}

function TaintNote({ sessionId, taint, isOpen }: TaintNoteProps) {
  const clear = useChange("clearTaint", {
    outdates: ["listSessions", "getSession", "listTaint"],
    onSuccess: () => toast("Only what is read from now on counts."),
  });
  const config = useOperation("getConfig", {});
  const mode = config.data?.values.find(({ key }) => key === "guard.taint")?.value;
  return (
    <div className="flex items-start gap-2 rounded-md bg-warn-wash px-3 py-2 text-ink">
      <Icon name="warning" className="mt-0.5 size-4 text-warn" />
      <div className="flex min-w-0 flex-1 flex-col gap-2 break-words">
        <ul className="flex flex-col gap-1">
          {taint.origins.map(({ server, name, read, callId, at, via }) => (
            <li key={server}>
              <span className="font-mono text-sm break-all">{name}</span> brought in content that anyone may have
              written
              {via !== undefined && <> kept in {via}</>} (<Time at={at} />)
              {read.length > 0 && <span className="break-all">: {read.join(", ")}</span>}{" "}
              <Link to="/audit" search={{ callId }} className="text-accent underline">
                The call in the audit log
              </Link>
            </li>
          ))}
        </ul>
        <p>{taintText(mode)}</p>
        {isOpen && (
          <Button
            size="sm"
            className="self-start"
            disabled={clear.isPending}
            onClick={() => clear.mutate({ sessionId })}
          >
            I have read it
          </Button>
        )}
      </div>
    </div>
  );
}

function DetailHeader({ session, onClose }: { readonly session: SessionDetail; readonly onClose: () => void }) {
  const [asking, setAsking] = useState(false);
  const end = useChange("closeSession", {
    outdates: ["listSessions", "getSession", "overview"],
    onSuccess: () => {
      setAsking(false);
      toast("The session was ended.");
    },
  });
  const isOpen = session.closedAt === null;
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="text-lg font-semibold break-words">{whoText(session)}</h2>
          <div className="mt-0.5 flex flex-wrap items-center gap-2 text-sm text-soft">
            <Badge tone={isOpen ? "ok" : "neutral"}>{isOpen ? "Open" : "Closed"}</Badge>
            <Badge>{doorWord(session.door)}</Badge>
            {session.running > 0 && <Badge tone="accent">{session.running} running</Badge>}
            {session.taint !== null && <Badge tone="warn">Tainted</Badge>}
          </div>
        </div>
        <IconButton label="Close the details" icon="close" onClick={onClose} />
      </div>
      {session.taint !== null && <TaintNote sessionId={session.id} taint={session.taint} isOpen={isOpen} />}
      <KeyValues
        rows={[
          ["Session", <span className="font-mono text-sm break-all">{session.id}</span>],
          ["User", session.user ?? "unknown"],
          ...(session.client === null ? [] : [["Client", clientText(session.client)] as const]),
          ["Role", session.role ?? "none"],
          ["Owner", session.owner ? "yes, it has all rights of its user" : "no"],
          ["Opened", <Time at={session.openedAt} />],
          ...(session.closedAt === null ? [] : [["Closed", <Time at={session.closedAt} />] as const]),
          [
            "Calls",
            <>
              {session.calls}
              {session.lastCallAt !== null && (
                <>
                  , the last <Time at={session.lastCallAt} />
                </>
              )}
            </>,
          ],
        ]}
      />
      <div className="flex flex-wrap items-center gap-3">
        <Link to="/audit" search={{ session: session.id }} className="text-accent underline">
          Its records in the audit log
        </Link>
        {isOpen && (
          <Button size="sm" variant="danger" icon="stop" className="ml-auto" onClick={() => setAsking(true)}>
            End the session
          </Button>
        )}
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="End this session?"
        action="End the session"
        danger
        busy={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate({ sessionId: session.id })}
      >
        Its calls in progress are cancelled, and its client is disconnected. The client can reconnect: to prevent that,
        remove its token from the config.
      </ConfirmDialog>
    </div>
  );
}
