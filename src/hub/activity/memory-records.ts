/** Sessions and approvals of a hub without a store: as many as there is room for, and gone with the hub. */
import { makeCursor, readCursor } from "../../store/page-cursor.ts";
import type {
  Page,
  PageOptions,
  StoredApproval,
  StoredApprovals,
  StoredSession,
  StoredSessions,
} from "../../store/store.ts";

/** Above this the oldest of those that are over make room. */
const MAX_KEPT = 2000;

export function memorySessions(): StoredSessions {
  const sessions = new Map<string, StoredSession>();
  const isOver = ({ closedAt }: StoredSession): boolean => closedAt !== null;
  return {
    async put(some) {
      for (const session of some) sessions.set(session.id, session);
      evict(sessions, isOver);
    },
    get: async (id) => sessions.get(id),
    async list({ state, door, ...page }) {
      const fitting = [...sessions.values()].filter(
        (each) => (state === undefined || isOver(each) === (state === "closed")) && (door ?? each.door) === each.door,
      );
      return pageOf(
        fitting.map((entry) => ({ entry, id: entry.id, at: entry.openedAt })),
        page,
      );
    },
    closeLeftOver: async () => 0,
    prune: async (before) => pruneOld(sessions, ({ closedAt }) => closedAt !== null && closedAt < before),
  };
}

export function memoryApprovals(): StoredApprovals {
  const approvals = new Map<string, StoredApproval>();
  return {
    async put(...some) {
      for (const approval of some) approvals.set(approval.id, approval);
      evict(approvals, ({ status }) => status !== "pending");
    },
    get: async (id) => approvals.get(id),
    async list({ status, ...page }) {
      const fitting = [...approvals.values()].filter((each) => (status ?? each.status) === each.status);
      return pageOf(
        fitting.map((entry) => ({ entry, id: entry.id, at: entry.askedAt })),
        page,
      );
    },
    expire: async () => 0,
    prune: async (before) => pruneOld(approvals, ({ askedAt }) => askedAt < before),
  };
}

/** In order of when they were first put. */
function evict<Entry>(entries: Map<string, Entry>, isOver: (entry: Entry) => boolean): void {
  if (entries.size <= MAX_KEPT) return;
  for (const [id, entry] of entries) {
    if (entries.size <= MAX_KEPT) return;
    if (isOver(entry)) entries.delete(id);
  }
}

function pruneOld<Entry>(entries: Map<string, Entry>, isOld: (entry: Entry) => boolean): number {
  const old = [...entries].filter(([, entry]) => isOld(entry));
  for (const [id] of old) entries.delete(id);
  return old.length;
}

export interface Timestamped<Entry> {
  readonly entry: Entry;
  readonly id: string;
  /** ISO time. */
  readonly at: string;
}

/** A page of a list in memory, newest first, with the same cursors as the store's. */
export function pageOf<Entry>(all: readonly Timestamped<Entry>[], { limit, cursor }: PageOptions): Page<Entry> {
  const sorted = all.toSorted((a, b) => compareText(b.at, a.at) || compareText(b.id, a.id));
  const start = cursor === undefined ? 0 : indexAfter(sorted, cursor);
  const shown = sorted.slice(start, start + limit);
  const last = start + limit < sorted.length ? shown.at(-1) : undefined;
  return {
    entries: shown.map(({ entry }) => entry),
    total: all.length,
    ...(last === undefined ? {} : { nextCursor: makeCursor([last.at, last.id]) }),
  };
}

/** By time and id, not by index: entries come and go between two pages. */
function indexAfter(sorted: readonly Timestamped<unknown>[], cursor: string): number {
  const [time, id] = readCursor(cursor, ["", ""] as const satisfies [string, string]);
  const place = sorted.findIndex((each) => (compareText(each.at, time) || compareText(each.id, id)) < 0);
  return place === -1 ? sorted.length : place;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
