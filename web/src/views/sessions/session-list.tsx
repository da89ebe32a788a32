import { Link } from "@tanstack/react-router";
import type { SessionInfo } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Time } from "../../components/time.tsx";
import { VirtualList } from "../../components/virtual-list.tsx";
import { countText } from "../../text.ts";
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
        label="Sessions"
        count={sessions.length}
        lineHeight={62}
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
      className={`flex h-[62px] flex-col justify-center gap-0.5 border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`}
    >
      <span className="flex items-center gap-2">
        <span className={`truncate font-medium ${session.closedAt === null ? "" : "text-soft"}`}>
          {whoText(session)}
        </span>
        {session.user !== null && session.role !== null && <Badge tone="info">{session.role}</Badge>}
        {session.running > 0 && <Badge tone="accent">{session.running} running</Badge>}
        {session.taint !== null && (
          <Badge tone="warn" title={`${session.taint.name} brought in content that anyone may have written`}>
            Tainted
          </Badge>
        )}
        <span className="ml-auto flex shrink-0 items-center gap-2">
          {session.closedAt !== null && <Badge>Closed</Badge>}
          <Badge>{doorWord(session.door)}</Badge>
        </span>
      </span>
      <span className="truncate text-sm text-soft">
        {session.closedAt === null ? (
          <>
            since <Time at={session.openedAt} />
          </>
        ) : (
          <>
            closed <Time at={session.closedAt} />
          </>
        )}
        {" · "}
        {session.calls === 0 || session.lastCallAt === null ? (
          "no calls"
        ) : (
          <>
            {countText(session.calls, "call")}, the last <Time at={session.lastCallAt} />
          </>
        )}
        {session.closedAt === null && session.toolCount !== null && ` · sees ${countText(session.toolCount, "tool")}`}
      </span>
    </Link>
  );
}
