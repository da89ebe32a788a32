/**
 * Pins in a store. `toolcrib.lock` beside a config of Toolcrib's own stays the form that people share: it wins for what it
 * names, what it does not name any more was forgotten on purpose, and one that is gone, or that nobody changed while the
 * store did, is written again from the store.
 */
import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { pinKey } from "../../guard/pins/compare.ts";
import { withLock } from "../../files/lock-file.ts";
import { realTarget } from "../../files/write-atomic.ts";
import type { Store, StoredPin } from "../../store/store.ts";
import { checkedPin, pinFileStamp, type PinTable, readPinFile, renderPins, writePinFile } from "./pin-file.ts";
import type { PinStorage, ReadPins } from "./pin-storage.ts";
import { isSamePin, type PinOf, pinsIn, withPins } from "./pin-table.ts";

export interface StoredPinsOptions {
  readonly store: Pick<Store, "pins" | "place" | "follow">;
  readonly file: string;
  /** What they are kept under. */
  readonly scope: string;
  /** What an earlier version kept them under: those are moved when they are first read. */
  readonly formerScopes?: readonly string[];
  /** Whether the file is one that people share. Another one is taken in once and set aside. */
  readonly isShared: boolean;
  /** What the file says when it is first read counts only for what the store does not know. */
  readonly storeDecides?: boolean;
  /**
   * A file in the home that is made once there was a lock file. Without one what the store knows was in the file; a store
   * that nodes share knows pins that this node never wrote down.
   */
  readonly trace?: string | undefined;
}

export function pinsInStore(options: StoredPinsOptions): PinStorage {
  const { store, file, scope, formerScopes = [], isShared, storeDecides = false, trace } = options;
  let stamp: string | undefined;
  /** The file as it was when file and store last said the same; undefined as long as they never did. */
  let agreed: string | undefined;
  let toMove = formerScopes.filter((former) => former !== scope);
  let isStale = false;
  let stopFollowing = (): void => {};

  async function readKept(): Promise<PinTable> {
    const rows = await store.pins.list(scope);
    return withPins(
      new Map(),
      rows.map(({ server, kind, tool, ...pin }) => ({
        server,
        pin: checkedPin(store.place, server, { kind, name: tool }, pin),
      })),
    );
  }

  async function change(from: PinTable, to: PinTable): Promise<void> {
    const put = pinsIn(to).filter(({ server, pin }) => !isSamePin(from.get(server)?.get(pinKey(pin)), pin));
    const remove = pinsIn(from).filter(({ server, pin }) => to.get(server)?.has(pinKey(pin)) !== true);
    if (put.length + remove.length === 0) return;
    await store.pins.change(
      scope,
      put.map(rowOf),
      remove.map(({ server, pin: { kind, name } }) => ({ server, kind, tool: name })),
    );
  }

  /** The new place first: a process that dies in between leaves both, and the next one goes on. */
  async function moveHere(): Promise<void> {
    for (const former of toMove) {
      const rows = await store.pins.list(former);
      if (rows.length === 0) continue;
      const known = new Set((await store.pins.list(scope)).map(rowKey));
      await store.pins.change(
        scope,
        rows.filter((row) => !known.has(rowKey(row))),
        [],
      );
      await store.pins.change(former, [], rows);
    }
    toMove = [];
  }

  /**
   * The file decides where somebody changed it, and as long as nobody knows. Where it is as it was, the store changed: another
   * machine may have a file of its own for the same pins, and two files that both decide would never come to rest.
   */
  function decides(found: PinTable): boolean {
    return agreed === undefined || renderPins(found) !== agreed;
  }

  function hadFile(): boolean {
    return trace === undefined || agreed !== undefined || existsSync(trace);
  }

  /** Where it cannot be left, a removal goes unnoticed after the next start. */
  async function leaveTrace(): Promise<void> {
    if (trace === undefined || existsSync(trace)) return;
    await mkdir(dirname(trace), { recursive: true, mode: 0o700 }).catch(() => {});
    await writeFile(trace, `${file}\n`, { mode: 0o600 }).catch(() => {});
  }

  async function locked<T>(task: () => Promise<T>): Promise<T> {
    const target = await realTarget(file);
    await mkdir(dirname(target), { recursive: true });
    return withLock(target, task);
  }

  function isSettled(found: PinTable | undefined, kept: PinTable): boolean {
    if (!isShared) return found === undefined;
    return found === undefined ? kept.size === 0 : renderPins(found) === renderPins(kept);
  }

  /** Brings file and store together. */
  async function settle(): Promise<ReadPins> {
    const found = readPinFile(file);
    const before = await readKept();
    if (found !== undefined && isShared && storeDecides && agreed === undefined) {
      const all = withPins(before, pinsIn(found));
      await change(before, all);
      await writePinFile(file, all).catch(() => {});
      agreed = renderPins(readPinFile(file) ?? all);
      return { pins: all, isRestored: false };
    }
    if (found !== undefined && isShared && !decides(found)) {
      // One that cannot be written is behind until it can be.
      await writePinFile(file, before).then(
        () => (agreed = renderPins(before)),
        () => {},
      );
      return { pins: before, isRestored: false };
    }
    if (found !== undefined) {
      await change(before, isShared ? found : withPins(before, pinsIn(found), { replace: true }));
      if (isShared) {
        agreed = renderPins(found);
        return { pins: found, before, isRestored: false };
      }
      await rename(file, `${file}.moved`);
      return { pins: await readKept(), isRestored: false };
    }
    if (!isShared || before.size === 0) return { pins: before.size === 0 ? undefined : before, isRestored: false };
    const wasHere = hadFile();
    // Where it cannot be written nobody took it away: it never was there.
    const isWritten = await writePinFile(file, before).then(
      () => true,
      () => false,
    );
    if (isWritten) agreed = renderPins(before);
    return { pins: before, isRestored: isWritten && wasHere };
  }

  return {
    file,
    unwritten: "They are kept in the store all the same; nobody can share them by the file until it can be written.",
    hasChanged: () => isStale || (isShared && pinFileStamp(file) !== stamp),
    async read() {
      stamp = pinFileStamp(file);
      const found = readPinFile(file);
      isStale = false;
      const reading = toMove.length === 0 ? readKept() : moveHere().then(readKept);
      const kept = await reading.catch((error: unknown) => {
        // A store that cannot be reached now may be later.
        isStale = true;
        throw error;
      });
      if (isSettled(found, kept)) {
        if (found !== undefined) {
          agreed = renderPins(found);
          await leaveTrace();
        }
        return { pins: found ?? (kept.size === 0 ? undefined : kept), isRestored: false };
      }
      // A folder that cannot be written to has no lock, and nobody who writes there.
      const read = await locked(settle).catch((error: unknown) => {
        if (isSystemError(error)) return settle();
        throw error;
      });
      stamp = pinFileStamp(file);
      if (stamp !== undefined) await leaveTrace();
      return read;
    },
    async update(edit) {
      return locked(async () => {
        if (toMove.length > 0) await moveHere();
        const found = readPinFile(file);
        const before = await readKept();
        const isRestored = isShared && found === undefined && before.size > 0 && hadFile();
        const edited = found !== undefined && isShared && !decides(found) ? before : found;
        const now = isShared ? edited : found && withPins(before, pinsIn(found), { replace: true });
        const pins = edit(now ?? (before.size === 0 ? undefined : before));
        await change(before, pins);
        if (isShared && (found === undefined || renderPins(found) !== renderPins(pins))) await writePinFile(file, pins);
        if (isShared) {
          agreed = renderPins(pins);
          await leaveTrace();
        }
        if (!isShared && found !== undefined) await rename(file, `${file}.moved`);
        // Written a moment ago: if it is gone already, the next look must find that out.
        stamp = pinFileStamp(file) ?? "removed";
        return { pins, isRestored };
      });
    },
    follow(onChange) {
      stopFollowing();
      stopFollowing = store.follow(({ topic, subject }) => {
        if (topic !== "pins" || (subject !== scope && subject !== "*")) return;
        isStale = true;
        onChange();
      });
    },
    close: () => stopFollowing(),
  };
}

function rowOf({ server, pin: { name, ...pin } }: PinOf): StoredPin {
  return { server, tool: name, ...pin };
}

function rowKey({ server, kind, tool }: StoredPin): string {
  return JSON.stringify([server, kind, tool]);
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
