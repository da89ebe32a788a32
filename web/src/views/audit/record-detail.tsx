/** One record with everything it holds. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { IconButton } from "../../components/button.tsx";
import { CopyButton } from "../../components/code.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { KeyValues } from "../../components/page.tsx";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { shell } from "../../messages/shell.ts";
import { bytesText, millisecondsText, momentText } from "../../text.ts";
import { CallContent } from "../traffic/call-content.tsx";
import { doorWord } from "../sessions/session-words.ts";
import { Passages } from "./passages.tsx";
import { findingsOf, ruleText, titleOf, verdictOf, whoOf } from "./audit-words.ts";

interface RecordProps {
  readonly entry: AuditEntry;
  readonly onClose: () => void;
}

export function RecordDetail({ entry, onClose }: RecordProps) {
  const { word, tone } = verdictOf(entry);
  return (
    <div className="flex flex-col gap-4 p-4">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="font-mono text-lg font-semibold break-all">{titleOf(entry)}</h2>
          <div className="mt-0.5 flex flex-wrap items-center gap-2 text-sm text-soft">
            <Badge tone={tone}>{word}</Badge>
            <Badge>{entry.type}</Badge>
            <time dateTime={entry.time}>{momentText(new Date(entry.time))}</time>
          </div>
        </div>
        <IconButton label={t(shell.close)} icon="close" onClick={onClose} />
      </div>
      <KeyValues rows={rowsOf(entry)} />
      {entry.type === "call" && entry.callId !== undefined && findingsOf(entry).length > 0 && (
        <Passages key={entry.callId} callId={entry.callId} />
      )}
      {entry.type === "call" && <CallContent entry={entry} />}
      <section>
        <div className="mb-1 flex items-center justify-between gap-2">
          <h3 className="font-semibold">{t(audit.fullRecord)}</h3>
          <CopyButton text={JSON.stringify(entry, undefined, 2)} label={t(audit.copyJson)} />
        </div>
        <JsonTree value={entry} label={t(audit.record)} depth={2} />
      </section>
    </div>
  );
}

function rowsOf(entry: AuditEntry): readonly (readonly [string, ReactNode])[] {
  const { callId, session, door, name, origin, decision, durationMs, resultBytes } = entry;
  const who = whoOf(entry);
  const rule = ruleText(entry);
  const findings = findingsOf(entry);
  return [
    ...(callId === undefined
      ? []
      : [
          [
            t(traffic.call),
            <>
              <span className="font-mono text-sm break-all">{callId}</span>{" "}
              <Link to="/audit" search={{ callId }} className="whitespace-nowrap text-accent underline">
                {t(audit.ofThisCall)}
              </Link>
            </>,
          ] as const,
        ]),
    ...(entry.event === undefined || name === undefined
      ? []
      : [[t(audit.subject), <span className="font-mono text-sm break-all">{name}</span>] as const]),
    ...(origin === undefined || origin === null
      ? []
      : [
          [
            t(traffic.server),
            <>
              {origin.source}
              {origin.name !== "" && <span className="font-mono text-sm break-all text-soft"> {origin.name}</span>}
            </>,
          ] as const,
        ]),
    ...(who === "" ? [] : [[t(audit.who), who] as const]),
    ...(door === undefined ? [] : [[t(traffic.door), doorWord(door)] as const]),
    ...(session === undefined || session === null
      ? []
      : [
          [
            t(traffic.session),
            <Link
              to="/sessions"
              search={{ state: "all", session }}
              className="font-mono text-sm break-all text-accent underline"
            >
              {session}
            </Link>,
          ] as const,
        ]),
    ...(decision === undefined || decision === "none" ? [] : [[t(audit.decision), decision] as const]),
    ...(rule === undefined ? [] : [[t(traffic.rule), <span className="break-words">{rule}</span>] as const]),
    ...(durationMs === undefined ? [] : [[t(traffic.took), millisecondsText(durationMs)] as const]),
    ...(resultBytes === undefined ? [] : [[t(traffic.size), bytesText(resultBytes)] as const]),
    ...(findings.length === 0
      ? []
      : [
          [
            t(traffic.findings),
            <span className="flex flex-wrap gap-1.5">
              {findings.map((code, index) => (
                <Badge key={index} tone="warn">
                  {code}
                </Badge>
              ))}
            </span>,
          ] as const,
        ]),
  ];
}
