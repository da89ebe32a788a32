/** Short messages at the edge of the page, read out by screen readers. */
import { useSyncExternalStore } from "react";
import { failureOf } from "../failure.ts";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { Button, IconButton } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly message: string;
  readonly hint: string | undefined;
  readonly bad: boolean;
  /** Takes back what the message is about. */
  readonly undo: (() => void) | undefined;
}

let toasts: readonly Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function show(change: readonly Toast[]): void {
  toasts = change;
  for (const listener of listeners) listener();
}

/** Longer where there is something to read or to press. */
const SHOWN_MS = 5000;
const SHOWN_LONG_MS = 12_000;

function add(given: Omit<Toast, "id">): void {
  const id = next;
  next += 1;
  show([...toasts.slice(-3), { id, ...given }]);
  setTimeout(() => dismiss(id), given.bad || given.undo !== undefined ? SHOWN_LONG_MS : SHOWN_MS);
}

function dismiss(id: number): void {
  show(toasts.filter((toast) => toast.id !== id));
}

export function toast(message: string, undo?: () => void): void {
  add({ message, hint: undefined, bad: false, undo });
}

export function toastError(error: unknown): void {
  const { message, hint } = failureOf(error);
  add({ message, hint, bad: true, undo: undefined });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div
      role="region"
      aria-label={t(shell.messages)}
      aria-live="polite"
      className="pointer-events-none fixed inset-x-0 bottom-16 z-[60] flex flex-col items-center gap-2 px-3 md:bottom-4"
    >
      {shown.map((each) => (
        <div
          key={each.id}
          className={`pointer-events-auto flex w-full max-w-md items-start gap-2 rounded-lg border bg-panel p-2 pl-3 shadow-float ${each.bad ? "border-bad" : "border-line"}`}
        >
          <Icon
            name={each.bad ? "warning" : "check"}
            className={`mt-1.5 size-4 ${each.bad ? "text-bad" : "text-ok"}`}
          />
          <div className="min-w-0 flex-1 py-1">
            <p className="break-words">{each.message}</p>
            {each.hint !== undefined && <p className="text-sm text-soft">{each.hint}</p>}
          </div>
          {each.undo !== undefined && (
            <Button
              size="sm"
              className="mt-0.5"
              onClick={() => {
                dismiss(each.id);
                each.undo?.();
              }}
            >
              {t(shell.undo)}
            </Button>
          )}
          <IconButton label={t(shell.dismiss)} icon="close" onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </div>
  );
}
