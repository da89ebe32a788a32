/** A list with the chosen entry beside it; where there is little room, one of the two. */
import { type ReactNode, useEffect, useEffectEvent, useRef } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { isTyping } from "./roving.ts";

interface SplitProps {
  readonly list: ReactNode;
  /** Undefined: nothing is chosen. */
  readonly detail: ReactNode | undefined;
  /** The name of the chosen one, for screen readers. */
  readonly detailLabel?: string;
  /** Escape closes the detail. */
  readonly onClose?: () => void;
}

/** They take Escape for themselves. */
const OVER = "[role=dialog], [role=alertdialog], [role=menu]";

export function Split({ list, detail, detailLabel = t(components.details), onClose }: SplitProps) {
  const chosen = detail !== undefined;
  const box = useRef<HTMLDivElement>(null);
  const close = useEffectEvent((event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented || isTyping(event.target)) return;
    if (document.querySelector(OVER) !== null) return;
    const line = box.current?.querySelector<HTMLElement>("[aria-current]");
    onClose?.();
    // Where there is little room, the list is shown again first.
    requestAnimationFrame(() => requestAnimationFrame(() => line?.focus()));
  });
  useEffect(() => {
    if (!chosen) return undefined;
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [chosen]);
  return (
    <div className={chosen ? "grid gap-4 xl:grid-cols-[minmax(20rem,2fr)_minmax(0,3fr)]" : "grid gap-4"}>
      <div ref={box} className={`min-w-0 ${chosen ? "hidden xl:sticky xl:top-4 xl:block xl:self-start" : ""}`}>
        {list}
      </div>
      {chosen && (
        <section aria-label={detailLabel} className="min-w-0 self-start rounded-lg border border-line bg-panel">
          {detail}
        </section>
      )}
    </div>
  );
}
