/**
 * Pid records: how children are found again after the hub itself was killed outright. Each hub process keeps one file
 * in `$TOOLCRIB_HOME/run` that lists its children; the next hub ends the children of those that are dead.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { wordsOf } from "./command-words.ts";
import { type ProcessTable, systemProcessTable } from "./process-table.ts";
import { type ReapedOrphan, reap } from "./reap.ts";
import type { ChildRecord, PidRecord } from "./record.ts";

export type { ReapedOrphan } from "./reap.ts";

export interface NewChild {
  readonly pid: number;
  readonly serverId: string;
  /** As it was started; what the process itself shows is added to it. */
  readonly command: string;
  readonly args: readonly string[];
}

export class PidRecords {
  readonly #dir: string;
  readonly #file: string;
  readonly #table: ProcessTable | null;
  readonly #children = new Map<number, ChildRecord>();
  /** The end of the turn, when something was written in it; null otherwise. */
  #endOfTurn: NodeJS.Immediate | null = null;
  #unwritten = false;

  constructor(dir: string, table: ProcessTable | null = systemProcessTable()) {
    this.#dir = dir;
    // Several hubs may live in one process, and a pid may come back: the random part keeps their files apart.
    this.#file = join(dir, `${process.pid}-${randomBytes(4).toString("hex")}.json`);
    this.#table = table;
  }

  /** Why children of a killed hub cannot be found again on this system, or null. */
  get unsupported(): string | null {
    if (this.#table !== null) return null;
    return `Servers left over from a killed hub are not found again on ${process.platform}.`;
  }

  /**
   * To be called in the same turn as spawn(): only a kill within that turn is missed. Never throws; the returned text says why a record could not be kept.
   */
  add(child: NewChild): string | null {
    const facts = this.#table?.find(child.pid) ?? null;
    if (facts === null) return null;
    this.#children.set(child.pid, {
      pid: child.pid,
      pgid: facts.pgid,
      startTime: facts.startTime,
      serverId: child.serverId,
      program: basename(child.command),
      words: wordsOf(child.command, ...child.args, facts.command),
      members: [],
    });
    return this.#save();
  }

  /** Looks at a child again once it is up: launchers have started what they launch and have changed their command line. */
  update(pid: number): string | null {
    const child = this.#children.get(pid);
    const facts = this.#table?.find(pid) ?? null;
    if (child === undefined || facts === null || this.#table === null) return null;
    const now = wordsOf(facts.command);
    const words = {
      all: [...new Set([...child.words.all, ...now.all])],
      telling: [...new Set([...child.words.telling, ...now.telling])],
    };
    const members = this.#table.descendants(pid).map((member) => ({ pid: member.pid, startTime: member.startTime }));
    if (words.all.length === child.words.all.length && members.length === 0) return null;
    this.#children.set(pid, { ...child, words, members });
    return this.#save();
  }

  remove(pid: number): void {
    if (this.#children.delete(pid)) this.#save();
  }

  /** Removes this hub's own record. */
  close(): void {
    this.#children.clear();
    if (this.#endOfTurn !== null) clearImmediate(this.#endOfTurn);
    this.#write();
  }

  /** Ends what hubs that are dead by now left behind, and removes their records. Never rejects. */
  async reapOrphans(): Promise<ReapedOrphan[]> {
    return this.#table === null ? [] : reap(this.#dir, this.#table);
  }

  /** At once, and if there is more in the same turn, all of that at its end: a hub may start thirty servers in one. */
  #save(): string | null {
    this.#unwritten = true;
    if (this.#endOfTurn !== null && this.#children.size > 0) return null;
    this.#endOfTurn ??= setImmediate(() => {
      this.#endOfTurn = null;
      if (this.#unwritten) this.#write();
    });
    return this.#write();
  }

  #write(): string | null {
    this.#unwritten = false;
    try {
      if (this.#children.size === 0) {
        rmSync(this.#file, { force: true });
        return null;
      }
      const owner = this.#table?.find(process.pid);
      if (owner === null || owner === undefined || this.#table === null)
        return "This process cannot be found in the process table.";
      const record: PidRecord = {
        version: 1,
        place: this.#table.place,
        owner: { pid: owner.pid, startTime: owner.startTime },
        children: [...this.#children.values()],
      };
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      // A folder that was there before may be open to others, and a forged record could aim our signals.
      chmodSync(this.#dir, 0o700);
      const draft = `${this.#file}.tmp`;
      writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
      renameSync(draft, this.#file);
      return null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return `No pid record can be kept in ${this.#dir}, so servers would outlive a hub that is killed: ${reason}`;
    }
  }
}
