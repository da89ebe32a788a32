/** One call: who, what, how it ended, and its arguments and result where they were recorded. */
import { Link } from "@tanstack/react-router";
import { Badge } from "../../components/badge.tsx";
import { IconButton } from "../../components/button.tsx";
import { KeyValues } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { traffic } from "../../messages/traffic.ts";
import { useOperation } from "../../state/queries.ts";
import { bytesText, millisecondsText, momentText } from "../../text.ts";
import { ruleText } from "../audit/audit-words.ts";
import { doorWord } from "../sessions/session-words.ts";
import { CallContent } from "./call-content.tsx";
import { OutcomeBadge } from "./outcome-badge.tsx";
import { hasEnded, type TrafficLine, WAITING } from "./traffic-log.ts";

const LINK = "text-accent underline";

export function CallDetail({ line, onClose }: { readonly line: TrafficLine; readonly onClose: () => void }) {
  const { callId, name, kind, outcome, serverId, session } = line;
  const isOver = hasEnded(line);
  const query = useOperation("listAudit", { callId, type: "call", limit: 1 }, { enabled: isOver });
  const entry = query.data?.entries[0];
  const rule = entry === undefined ? undefined : ruleText(entry);
  return (
    <div className="flex flex-col gap-4 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="font-mono text-lg font-semibold break-all">{name}</h2>
          <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
            <OutcomeBadge outcome={outcome} />
            <time dateTime={line.time} className="text-soft">
              {momentText(new Date(line.time))}
            </time>
            {outcome === WAITING && (
              <Link to="/approvals" className={LINK}>
                {t(traffic.answer)}
              </Link>
            )}
            {kind === "tool" && serverId !== null && (
              <Link to="/tools" search={{ tool: name }} className={LINK}>
                {t(traffic.openTool)}
              </Link>
            )}
            {isOver && (
              <Link to="/audit" search={{ callId }} className={LINK}>
                {t(traffic.inAudit)}
              </Link>
            )}
          </div>
        </div>
        <IconButton label={t(shell.close)} icon="close" onClick={onClose} />
      </div>
      <KeyValues
        rows={[
          ...(line.client === undefined ? [] : [[t(traffic.client), line.client] as const]),
          ...(line.user === null ? [] : [[t(traffic.user), line.user] as const]),
          ...(line.role === null ? [] : [[t(traffic.role), line.role] as const]),
          ...(line.door === "" ? [] : [[t(traffic.door), doorWord(line.door)] as const]),
          ...(serverId === null
            ? []
            : [
                [
                  t(traffic.server),
                  <Link to="/servers" search={{ server: serverId }} className={LINK}>
                    {serverId}
                  </Link>,
                ] as const,
              ]),
          ...(session === ""
            ? []
            : [
                [
                  t(traffic.session),
                  <Link
                    to="/sessions"
                    search={{ state: "all", session }}
                    className={`font-mono text-sm break-all ${LINK}`}
                  >
                    {session}
                  </Link>,
                ] as const,
              ]),
          [t(traffic.call), <span className="font-mono text-sm break-all">{callId}</span>],
          ...(rule === undefined ? [] : [[t(traffic.rule), rule] as const]),
          ...(line.durationMs === undefined ? [] : [[t(traffic.took), millisecondsText(line.durationMs)] as const]),
          ...(line.resultBytes === undefined ? [] : [[t(traffic.size), bytesText(line.resultBytes)] as const]),
          ...(line.findings.length === 0
            ? []
            : [
                [
                  t(traffic.findings),
                  <span className="flex flex-wrap gap-1.5">
                    {line.findings.map((code) => (
                      <Badge key={code} tone="warn">
                        {code}
                      </Badge>
                    ))}
                  </span>,
                ] as const,
              ]),
        ]}
      />
      {isOver ? (
        <Loaded query={query} skeleton={<Skeleton lines={3} />}>
          {() =>
            entry === undefined ? <p className="text-soft">{t(traffic.notRecorded)}</p> : <CallContent entry={entry} />
          }
        </Loaded>
      ) : (
        <p className="text-soft">{t(traffic.notEnded)}</p>
      )}
    </div>
  );
}
