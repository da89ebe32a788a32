/** Sessions and approvals of a hub without a store: as many as there is room for, and gone with the hub. */
import type { StoredApproval, StoredApprovals, StoredSession, StoredSessions } from "../../store/store.ts";
import { pageOf } from "./pages.ts";

/** Above this the oldest of those that are over make room. */
const MOST_KEPT = 2000;

export function memorySessions(): StoredSessions {
  const sessions = new Map<string, StoredSession>();
  const isOver = ({ closedAt }: StoredSession): boolean => closedAt !== null;
  return {
    async put(some) {
      for (const session of some) sessions.set(session.id, session);
      makeRoom(sessions, isOver);
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
    // Nobody else writes here.
    closeLeftOver: async () => 0,
    prune: async (before) => prune(sessions, ({ closedAt }) => closedAt !== null && closedAt < before),
  };
}

export function memoryApprovals(): StoredApprovals {
  const approvals = new Map<string, StoredApproval>();
  return {
    async put(approval) {
      approvals.set(approval.id, approval);
      makeRoom(approvals, ({ status }) => status !== "pending");
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
    prune: async (before) => prune(approvals, ({ askedAt }) => askedAt < before),
  };
}

/** In order of when they were first put. */
function makeRoom<Entry>(entries: Map<string, Entry>, isOver: (entry: Entry) => boolean): void {
  if (entries.size <= MOST_KEPT) return;
  for (const [id, entry] of entries) {
    if (entries.size <= MOST_KEPT) return;
    if (isOver(entry)) entries.delete(id);
  }
}

function prune<Entry>(entries: Map<string, Entry>, isOld: (entry: Entry) => boolean): number {
  const old = [...entries].filter(([, entry]) => isOld(entry));
  for (const [id] of old) entries.delete(id);
  return old.length;
}
