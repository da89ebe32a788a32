import { Link } from "@tanstack/react-router";
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Icon } from "../../components/icon.tsx";
import { t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { millisecondsText, momentText } from "../../text.ts";
import { doorWord } from "../sessions/session-words.ts";
import { aboutOf, findingsOf, stampText, titleOf, verdictOf, whoOf } from "./audit-words.ts";
import { keyOf } from "./newest-records.ts";

interface AuditLineProps {
  readonly entry: AuditEntry;
  readonly chosen: boolean;
  /** There is room for columns. */
  readonly isWide: boolean;
  readonly now: number;
}

export function AuditLine({ entry, chosen, isWide, now }: AuditLineProps) {
  const { word, tone } = verdictOf(entry);
  const findings = findingsOf(entry);
  const mark = findings.length > 0 && (
    <span title={t(traffic.found, { codes: findings.join(", ") })} className="inline-flex text-warn">
      <Icon name="warning" />
      <span className="sr-only">{t(traffic.withFindings)}</span>
    </span>
  );
  const stamp = (
    <time dateTime={entry.time} title={momentText(new Date(entry.time))} className="whitespace-nowrap text-soft">
      {stampText(entry.time, now)}
    </time>
  );
  const about = aboutOf(entry);
  const title = (
    <span
      className={`truncate font-mono ${isWide ? "" : "text-sm font-medium"}`}
      title={about === "" ? undefined : `${titleOf(entry)} ${about}`}
    >
      {titleOf(entry)}
      {about !== "" && <span className="font-normal text-soft"> {about}</span>}
    </span>
  );
  const door = entry.door === undefined ? "" : doorWord(entry.door);
  const took = entry.durationMs === undefined ? "" : millisecondsText(entry.durationMs);
  const shared = `border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`;
  return (
    <Link
      from="/audit"
      to="/audit"
      search={(old) => ({ ...old, entry: keyOf(entry) })}
      preload={false}
      aria-current={chosen ? "true" : undefined}
      className={
        isWide
          ? `grid h-line grid-cols-[8.5rem_9rem_minmax(0,1fr)_7rem_10rem_6rem_5rem] items-center gap-3 text-sm ${shared}`
          : `flex h-line-2 flex-col justify-center gap-0.5 ${shared}`
      }
    >
      {isWide ? (
        <>
          {stamp}
          <span className="flex items-center gap-1.5 overflow-hidden">
            <Badge tone={tone}>{word}</Badge>
            {mark}
          </span>
          {title}
          <span className="truncate text-soft">{entry.origin?.source}</span>
          <span className="truncate text-soft">{whoOf(entry)}</span>
          <span className="truncate text-soft">{door}</span>
          <span className="text-right whitespace-nowrap text-soft">{took}</span>
        </>
      ) : (
        <>
          <span className="flex items-center gap-2">
            {title}
            {mark}
            <span className="ml-auto shrink-0">
              <Badge tone={tone}>{word}</Badge>
            </span>
          </span>
          <span className="flex gap-2 truncate text-sm text-soft">
            {stamp}
            <span className="truncate">{[whoOf(entry), door, took].filter((part) => part !== "").join(" · ")}</span>
          </span>
        </>
      )}
    </Link>
  );
}
