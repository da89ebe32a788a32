/**
 * The net under every way out of this process. Children run in groups of their own, so they do not die with us:
 * on `exit` they are killed at once, and on a signal the hub is closed properly first.
 */
import { constants } from "node:os";
import { signalGroup } from "./process-group.ts";

// One set for the process, because `exit` and signals are events of the process.
const groups = new Set<number>();

/** The returned function ends the watch; call it when the group is gone. */
export function watchGroup(pgid: number): () => void {
  if (groups.size === 0) process.on("exit", killGroups);
  groups.add(pgid);
  return () => {
    if (groups.delete(pgid) && groups.size === 0) process.off("exit", killGroups);
  };
}

/** At once, for a process that has to end before they would. */
export function killGroups(): void {
  for (const pgid of groups) signalGroup(pgid, "SIGKILL");
}

type Closer = () => Promise<void>;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** By closer: whether it gives way to a program that listens for the signal itself. */
const closers = new Map<Closer, boolean>();
let closing = false;

export interface SignalOptions {
  /** Do nothing if the program has a listener of its own: how it ends is its business then. */
  readonly unlessHandled?: boolean;
}

/**
 * From now on SIGINT, SIGTERM and SIGHUP run `close` and then end the process as that signal would have; a second
 * signal ends it at once. Several hubs may ask for it. The returned function takes it back.
 */
export function closeOnSignals(close: Closer, { unlessHandled = false }: SignalOptions = {}): () => void {
  if (closers.size === 0) for (const signal of SIGNALS) process.on(signal, onSignal);
  closers.set(close, unlessHandled);
  return () => {
    if (closers.delete(close) && closers.size === 0) stopListening();
  };
}

function stopListening(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  const isHandled = process.listenerCount(signal) > 1;
  const due = [...closers].filter(([, unlessHandled]) => !(unlessHandled && isHandled)).map(([close]) => close);
  if (due.length === 0) return;
  if (closing) return die(signal);
  closing = true;
  // A close that fails must not keep the process; what it left is killed on the way out.
  void Promise.allSettled(due.map(async (close) => close())).then(() => die(signal));
}

function die(signal: NodeJS.Signals): void {
  stopListening();
  // The default action of a signal skips `exit` listeners.
  killGroups();
  // Raised again, so that a shell sees that we died of it; but not if the program has a listener of its own, which
  // was called already.
  if (process.platform !== "win32" && process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]);
}
