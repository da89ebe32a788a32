/** One session: who it is, what it sees, what tainted it; and its end. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { SessionDetail } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyValues } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { t } from "../../messages/messages.ts";
import { sessionWords } from "../../messages/session-words.ts";
import { shell } from "../../messages/shell.ts";
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
      <Empty title={t(sessionWords.missing)} action={<Button onClick={onClose}>{t(sessionWords.back)}</Button>}>
        {t(sessionWords.missingHow)}
      </Empty>
    );
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(sessionWords.loadingOne)} />}>
      {({ session }) => (
        <>
          <DetailHeader session={session} onClose={onClose} />
          <Tabs
            label={t(sessionWords.contents)}
            value={tab ?? "tools"}
            onChange={onTab}
            tabs={[
              {
                id: "tools",
                label: t(shell.tools),
                count: session.tools.length,
                content: <ToolsTab session={session} />,
              },
              {
                id: "skills",
                label: t(sessionWords.activeSkills),
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
    onSuccess: () => toast(t(sessionWords.taintCleared)),
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
              <RichText
                message={via === undefined ? sessionWords.taintedBy : sessionWords.taintedThrough}
                values={{ name: <span className="font-mono text-sm break-all">{name}</span>, via }}
              />{" "}
              (<Time at={at} />){read.length > 0 && <span className="break-all">: {read.join(", ")}</span>}{" "}
              <Link to="/audit" search={{ callId }} className="text-accent underline">
                {t(sessionWords.taintCall)}
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
            {t(sessionWords.haveRead)}
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
      toast(t(sessionWords.endDone));
    },
  });
  const isOpen = session.closedAt === null;
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="text-lg font-semibold break-words">{whoText(session)}</h2>
          <div className="mt-0.5 flex flex-wrap items-center gap-2 text-sm text-soft">
            <Badge tone={isOpen ? "ok" : "neutral"}>{t(isOpen ? sessionWords.open : sessionWords.closed)}</Badge>
            <Badge>{doorWord(session.door)}</Badge>
            {session.running > 0 && <Badge tone="accent">{t(sessionWords.running, { count: session.running })}</Badge>}
            {session.taint !== null && <Badge tone="warn">{t(sessionWords.tainted)}</Badge>}
          </div>
        </div>
        <IconButton label={t(sessionWords.closeDetails)} icon="close" onClick={onClose} />
      </div>
      {session.taint !== null && <TaintNote sessionId={session.id} taint={session.taint} isOpen={isOpen} />}
      <KeyValues
        rows={[
          [t(sessionWords.session), <span className="font-mono text-sm break-all">{session.id}</span>],
          [t(sessionWords.user), session.user ?? t(sessionWords.unknown)],
          ...(session.client === null ? [] : [[t(sessionWords.client), clientText(session.client)] as const]),
          [t(sessionWords.role), session.role ?? t(sessionWords.noRole)],
          [t(sessionWords.owner), t(session.owner ? sessionWords.isOwner : sessionWords.notOwner)],
          [t(sessionWords.openedAt), <Time at={session.openedAt} />],
          ...(session.closedAt === null ? [] : [[t(sessionWords.closed), <Time at={session.closedAt} />] as const]),
          [
            t(sessionWords.callCount),
            session.lastCallAt === null ? (
              t(sessionWords.noCalls)
            ) : (
              <RichText
                message={sessionWords.calls}
                values={{ count: session.calls, when: <Time at={session.lastCallAt} /> }}
              />
            ),
          ],
        ]}
      />
      <div className="flex flex-wrap items-center gap-3">
        <Link to="/audit" search={{ session: session.id }} className="text-accent underline">
          {t(sessionWords.records)}
        </Link>
        {isOpen && (
          <Button size="sm" variant="danger" icon="stop" className="ml-auto" onClick={() => setAsking(true)}>
            {t(sessionWords.end)}
          </Button>
        )}
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t(sessionWords.endAsk)}
        action={t(sessionWords.end)}
        danger
        busy={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate({ sessionId: session.id })}
      >
        {t(sessionWords.endHow)}
      </ConfirmDialog>
    </div>
  );
}
