/** Lists by keyboard: one line is in the tab order; arrows, j and k move to others, and Enter opens as a click does. */
import { type FocusEvent, type KeyboardEvent, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { lineAfter } from "./line-after.ts";

/** Lines have `data-index`. */
const LINE = "[data-index]";
const CONTROLS = "a[href], button, input, select, textarea, summary";

interface Roving {
  /** The line that Tab leads to. */
  readonly active: number;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onFocus: (event: FocusEvent) => void;
}

function indexOf(target: EventTarget): number | undefined {
  const line = target instanceof Element ? target.closest<HTMLElement>(LINE) : null;
  return line === null ? undefined : Number(line.dataset["index"]);
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !/^(?:checkbox|radio|button|submit)$/.test(target.type);
  return target.isContentEditable || /^(?:TEXTAREA|SELECT)$/.test(target.tagName);
}

/** @param reveal Scrolls to a line that may not exist yet. */
export function useRoving(
  frame: RefObject<HTMLElement | null>,
  count: number,
  reveal: (index: number) => void = () => {},
): Roving {
  const [active, setActive] = useState(0);
  const wanted = useRef<number>(undefined);
  const last = Math.min(active, Math.max(count - 1, 0));

  // After every drawing: lines come and go while the list scrolls.
  useLayoutEffect(() => {
    for (const line of frame.current?.querySelectorAll<HTMLElement>(LINE) ?? []) {
      const index = Number(line.dataset["index"]);
      const controls = line.querySelectorAll<HTMLElement>(CONTROLS);
      for (const control of controls) control.tabIndex = index === last ? 0 : -1;
      if (index !== wanted.current) continue;
      wanted.current = undefined;
      // A line may begin with a box to tick; the link is what opens it.
      const link = line.querySelector<HTMLElement>("a[href]");
      (link ?? controls[0])?.focus();
      // Beside an open entry the keys go through the entries themselves. Not while React draws, where a click is lost.
      if (frame.current?.querySelector("[aria-current]") !== null) queueMicrotask(() => link?.click());
    }
  });

  return {
    active: last,
    onKeyDown(event) {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // A quick key goes on from the line that the one before leads to, also while that is not drawn yet.
      const here = wanted.current ?? indexOf(event.target);
      // From the list itself, the first key leads to the line where one was before.
      const next =
        here === undefined && /^(?:Arrow|[jk]$)/.test(event.key) ? last : lineAfter(event.key, here ?? last, count);
      if (next === undefined || /^Arrow(?:Left|Right)$/.test(event.key)) return;
      event.preventDefault();
      wanted.current = next;
      setActive(next);
      reveal(next);
    },
    onFocus(event) {
      const here = indexOf(event.target);
      if (here === undefined) return;
      wanted.current = undefined;
      setActive(here);
    },
  };
}
