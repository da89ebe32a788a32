/** Puts records that came since into the pages that are shown, without a gap and without doubles. */
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";

export interface AuditPage {
  readonly entries: AuditEntry[];
  readonly nextCursor?: string | undefined;
}

/** The hash is of the record and of all before it. */
export function keyOf(entry: AuditEntry): string {
  return entry.hash;
}

/**
 * A record's time is when its call began, so that a long call comes in below newer ones: the newest page as the hub orders it
 * takes the place of the beginning. If more came than it holds, it takes the place of all.
 */
export function withNewest(pages: readonly AuditPage[], newest: AuditPage): AuditPage[] {
  const known = new Set(pages.flatMap((page) => page.entries.map(keyOf)));
  const meets = newest.entries.some((entry) => known.has(keyOf(entry)));
  if (newest.nextCursor === undefined || !meets) return [newest];
  const there = new Set(newest.entries.map(keyOf));
  const ended = new Set(newest.entries.flatMap(endedCall));
  return pages.map((page, index) => ({
    ...page,
    entries: [
      ...(index === 0 ? newest.entries : []),
      ...page.entries.filter((entry) => !there.has(keyOf(entry)) && !isEnded(entry, ended)),
    ],
  }));
}

/** Calls that ended while their beginning is still shown. */
export function strayStarts(pages: readonly AuditPage[], finished: ReadonlySet<string>): string[] {
  return pages.flatMap((page) =>
    page.entries.flatMap(({ type, callId }) =>
      type === "start" && callId !== undefined && finished.has(callId) ? [callId] : [],
    ),
  );
}

/** The end of a call has the time of its beginning, and so its place. */
export function withEnds(pages: readonly AuditPage[], ends: readonly AuditEntry[]): AuditPage[] {
  const byCall = new Map(ends.map((end) => [end.callId, end]));
  return pages.map((page) => ({
    ...page,
    entries: page.entries.map((entry) => (entry.type === "start" ? (byCall.get(entry.callId) ?? entry) : entry)),
  }));
}

function endedCall({ type, callId }: AuditEntry): string[] {
  return type === "call" && callId !== undefined ? [callId] : [];
}

function isEnded({ type, callId }: AuditEntry, ended: ReadonlySet<string>): boolean {
  return type === "start" && callId !== undefined && ended.has(callId);
}
