/** Which living processes a record's child stands for. When in doubt, none: an orphan left is better than a stranger killed. */
import { shareWord, wordsOf } from "./command-words.ts";
import type { ProcessFacts, ProcessTable } from "./process-table.ts";
import type { ChildRecord } from "./record.ts";

/** What is to be ended: a whole group that is proven ours, or single processes. */
export interface Survivors {
  readonly pgid: number | null;
  readonly pids: readonly number[];
}

export function survivorsOf(child: ChildRecord, table: ProcessTable): Survivors | null {
  const leader = table.find(child.pid);
  if (leader !== null) {
    const ours =
      leader.startTime === child.startTime &&
      leader.pgid === child.pgid &&
      shareWord(child.words.all, wordsOf(leader.command).all);
    return ours ? { pgid: child.pgid, pids: [leader.pid] } : null;
  }
  const group = table.group(child.pgid);
  const isKnown = (member: ProcessFacts): boolean =>
    child.members.some(({ pid, startTime }) => member.pid === pid && member.startTime === startTime);
  if (group.some(isKnown)) return { pgid: child.pgid, pids: group.map(({ pid }) => pid) };
  // The leader is gone and nobody known is left. Its group id may have been reused, so each process must look ours.
  const likely = group.filter(
    (member) => startedAfter(member, child) && shareWord(child.words.telling, wordsOf(member.command).telling),
  );
  return likely.length === 0 ? null : { pgid: null, pids: likely.map(({ pid }) => pid) };
}

function startedAfter(member: ProcessFacts, child: ChildRecord): boolean {
  const [started, leaderStarted] = [timeOf(member.startTime), timeOf(child.startTime)];
  return started !== null && leaderStarted !== null && started >= leaderStarted;
}

function timeOf(startTime: string): number | null {
  const time = /^\d+$/.test(startTime) ? Number(startTime) : Date.parse(startTime);
  return Number.isFinite(time) ? time : null;
}
