/** One record with everything it holds. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { IconButton } from "../../components/button.tsx";
import { CopyButton } from "../../components/code.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { KeyValues } from "../../components/page.tsx";
import { bytesText, millisecondsText } from "../../text.ts";
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
            <time dateTime={entry.time}>{new Date(entry.time).toLocaleString()}</time>
          </div>
        </div>
        <IconButton label="Close the details" icon="close" onClick={onClose} />
      </div>
      <KeyValues rows={rowsOf(entry)} />
      {entry.type === "call" && entry.callId !== undefined && findingsOf(entry).length > 0 && (
        <Passages key={entry.callId} callId={entry.callId} />
      )}
      {entry.type === "call" && <CallContent entry={entry} />}
      <section>
        <div className="mb-1 flex items-center justify-between gap-2">
          <h3 className="font-semibold">Full record</h3>
          <CopyButton text={JSON.stringify(entry, undefined, 2)} label="Copy as JSON" />
        </div>
        <JsonTree value={entry} label="The record" depth={2} />
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
            "Call",
            <>
              <span className="font-mono text-sm break-all">{callId}</span>{" "}
              <Link to="/audit" search={{ callId }} className="whitespace-nowrap text-accent underline">
                All records of this call
              </Link>
            </>,
          ] as const,
        ]),
    ...(entry.event === undefined || name === undefined
      ? []
      : [["About", <span className="font-mono text-sm break-all">{name}</span>] as const]),
    ...(origin === undefined || origin === null
      ? []
      : [
          [
            "Server",
            <>
              {origin.source}
              {origin.name !== "" && <span className="font-mono text-sm break-all text-soft"> {origin.name}</span>}
            </>,
          ] as const,
        ]),
    ...(who === "" ? [] : [["Who", who] as const]),
    ...(door === undefined ? [] : [["Door", doorWord(door)] as const]),
    ...(session === undefined || session === null
      ? []
      : [
          [
            "Session",
            <Link
              to="/sessions"
              search={{ state: "all", session }}
              className="font-mono text-sm break-all text-accent underline"
            >
              {session}
            </Link>,
          ] as const,
        ]),
    ...(decision === undefined || decision === "none" ? [] : [["Decision", decision] as const]),
    ...(rule === undefined ? [] : [["Rule", <span className="break-words">{rule}</span>] as const]),
    ...(durationMs === undefined ? [] : [["Took", millisecondsText(durationMs)] as const]),
    ...(resultBytes === undefined ? [] : [["Result", bytesText(resultBytes)] as const]),
    ...(findings.length === 0
      ? []
      : [
          [
            "Findings",
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
