import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ChangeSet, recoverChanges } from "../../../src/files/change-set/change-set.ts";
import type { EntryChange, UndoEntries } from "../../../src/files/change-set/change-journal.ts";
import { makePlace } from "./support.ts";

/** A table in memory, with the compare and set that undoing needs. */
class Table {
  readonly entries = new Map<string, unknown>([["a", 1]]);

  readonly write = async (changes: readonly EntryChange[]): Promise<void> => {
    for (const { id, after } of changes) this.#set(id, after);
  };

  readonly undo: UndoEntries = async (changes) => {
    const undone = changes.filter(({ id, before }) => this.#get(id) !== before);
    const ours = undone.filter(({ id, after }) => this.#get(id) === after);
    for (const { id, before } of ours) this.#set(id, before);
    return ours.length < undone.length ? "kept" : ours.length > 0 ? "restored" : "same";
  };

  #get(id: string): unknown {
    return this.entries.get(id) ?? null;
  }

  #set(id: string, value: unknown): void {
    if (value === null) this.entries.delete(id);
    else this.entries.set(id, value);
  }
}

const CHANGES: readonly EntryChange[] = [
  { id: "a", before: 1, after: 2 },
  { id: "b", before: null, after: 3 },
];

describe("[skill-11e] entries of a change set", () => {
  it("go back with the files, in the order in which they were changed", async () => {
    const { root, journals } = await makePlace();
    const table = new Table();
    const file = join(root, "file");
    writeFileSync(file, "before");
    const changes = new ChangeSet({ journalDir: journals, undoEntries: table.undo });
    await changes.editFile(file, () => "after");
    await changes.changeEntries("the table", CHANGES, () => table.write(CHANGES));
    expect([...table.entries]).toEqual([
      ["a", 2],
      ["b", 3],
    ]);
    expect(await changes.undo()).toEqual({ kept: [] });
    expect([...table.entries]).toEqual([["a", 1]]);
    expect(readFileSync(file, "utf8")).toBe("before");
  });

  it("stand when it is done, and are not written if the journal cannot be", async () => {
    const { root, journals } = await makePlace();
    const table = new Table();
    const changes = new ChangeSet({ journalDir: journals, undoEntries: table.undo });
    await changes.changeEntries("the table", CHANGES, () => table.write(CHANGES));
    await changes.done();
    expect(table.entries.get("a")).toBe(2);
    writeFileSync(join(root, "no-folder"), "");
    const impossible = new ChangeSet({ journalDir: join(root, "no-folder"), undoEntries: table.undo });
    await expect(impossible.changeEntries("the table", CHANGES, () => Promise.reject(new Error()))).rejects.toThrow(
      "no-folder",
    );
  });

  it("that somebody else changed since are left and named", async () => {
    const { journals } = await makePlace();
    const table = new Table();
    const changes = new ChangeSet({ journalDir: journals, undoEntries: table.undo });
    await changes.changeEntries("the table", CHANGES, () => table.write(CHANGES));
    table.entries.set("b", 99);
    expect(await changes.undo()).toEqual({ kept: ["the table"] });
    expect([...table.entries]).toEqual([
      ["a", 1],
      ["b", 99],
    ]);
  });

  it("of a process that was killed go back, done or not, and wait for somebody who knows how", async () => {
    for (const isWritten of [true, false]) {
      const { journals } = await makePlace();
      const dir = join(journals, "999999999.killed");
      mkdirSync(dir, { recursive: true });
      const lines = [
        { kind: "owner", pid: 999_999_999, host: hostname() },
        { kind: "entries", id: 1, path: "the table", changes: CHANGES },
      ];
      writeFileSync(join(dir, "journal"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      const table = new Table();
      if (isWritten) await table.write(CHANGES);
      expect(await recoverChanges(journals)).toEqual([]);
      expect(await readdir(journals)).toEqual(["999999999.killed"]);
      expect(await recoverChanges(journals, { undoEntries: table.undo })).toEqual(isWritten ? ["the table"] : []);
      expect([...table.entries]).toEqual([["a", 1]]);
      expect(await readdir(journals)).toEqual([]);
    }
  });
});
