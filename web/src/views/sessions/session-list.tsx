import { Link } from "@tanstack/react-router";
import type { SessionInfo } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Time } from "../../components/time.tsx";
import { LINE_2_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { t } from "../../messages/messages.ts";
import { sessionWords } from "../../messages/session-words.ts";
import { shell } from "../../messages/shell.ts";
import { doorWord, whoText } from "./session-words.ts";

interface SessionListProps {
  readonly sessions: readonly SessionInfo[];
  readonly chosen: string | undefined;
  readonly onEnd: (() => void) | undefined;
}

export function SessionList({ sessions, chosen, onEnd }: SessionListProps) {
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-panel">
      <VirtualList
        label={t(shell.sessions)}
        count={sessions.length}
        lineHeight={LINE_2_HEIGHT}
        fixed
        lineKey={(index) => sessions[index]?.id ?? String(index)}
        onEnd={onEnd}
        className="max-h-[calc(100dvh-13rem)]"
        line={(index) => {
          const session = sessions[index];
          return session === undefined ? null : <SessionLine session={session} chosen={session.id === chosen} />;
        }}
      />
    </div>
  );
}

function SessionLine({ session, chosen }: { readonly session: SessionInfo; readonly chosen: boolean }) {
  return (
    <Link
      from="/sessions"
      to="/sessions"
      search={(old) => ({ ...old, session: session.id, tab: undefined })}
      aria-current={chosen ? "true" : undefined}
      className={`flex h-line-2 flex-col justify-center gap-0.5 border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`}
    >
      <span className="flex items-center gap-2">
        <span className={`truncate font-medium ${session.closedAt === null ? "" : "text-soft"}`}>
          {whoText(session)}
        </span>
        {session.user !== null && session.role !== null && <Badge tone="info">{session.role}</Badge>}
        {session.running > 0 && <Badge tone="accent">{t(sessionWords.running, { count: session.running })}</Badge>}
        {session.taint !== null && (
          <Badge tone="warn" title={t(sessionWords.taintedBy, { name: session.taint.name })}>
            {t(sessionWords.tainted)}
          </Badge>
        )}
        <span className="ml-auto flex shrink-0 items-center gap-2">
          {session.closedAt !== null && <Badge>{t(sessionWords.closed)}</Badge>}
          <Badge>{doorWord(session.door)}</Badge>
        </span>
      </span>
      <span className="truncate text-sm text-soft">
        <RichText
          message={session.closedAt === null ? sessionWords.opened : sessionWords.ended}
          values={{ when: <Time at={session.closedAt ?? session.openedAt} /> }}
        />
        {" · "}
        {session.calls === 0 || session.lastCallAt === null ? (
          t(sessionWords.noCalls)
        ) : (
          <RichText
            message={sessionWords.calls}
            values={{ count: session.calls, when: <Time at={session.lastCallAt} /> }}
          />
        )}
        {session.closedAt === null &&
          session.toolCount !== null &&
          ` · ${t(sessionWords.sees, { count: session.toolCount })}`}
      </span>
    </Link>
  );
}
