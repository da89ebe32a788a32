/** A list of which only the lines in sight exist. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef } from "react";
import { useRoving } from "./roving.ts";

/** Pixels of a line with one row of text, and of one with two: the classes `h-line` and `h-line-2`. */
export const LINE_HEIGHT = 36;
export const LINE_2_HEIGHT = 56;

interface VirtualListProps {
  /** For screen readers. */
  readonly label: string;
  readonly count: number;
  /** Of a line, in pixels; lines are measured once they are there. */
  readonly lineHeight: number;
  /** Every line has just that height, so that nothing needs to be measured. */
  readonly fixed?: boolean;
  readonly line: (index: number) => ReactNode;
  readonly lineKey?: (index: number) => string;
  /** The end is near: ask for more. Undefined while nothing can be asked for. */
  readonly onEnd?: (() => void) | undefined;
  readonly className?: string;
}

export function VirtualList({
  label,
  count,
  lineHeight,
  fixed = false,
  line,
  lineKey,
  onEnd,
  className = "h-[70dvh]",
}: VirtualListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => lineHeight,
    overscan: 12,
    getItemKey: lineKey,
  });
  // Lines of another height have other places.
  useLayoutEffect(() => virtual.measure(), [lineHeight]);
  const roving = useRoving(frame, count, (index) => virtual.scrollToIndex(index));
  const lines = virtual.getVirtualItems();
  const last = lines.at(-1)?.index ?? -1;
  useEffect(() => {
    if (count > 0 && last >= count - 20) onEnd?.();
    // A new function with the same end is no reason to ask again.
  }, [last, count, onEnd === undefined]);
  return (
    <div
      ref={frame}
      role="list"
      aria-label={label}
      // One stop for Tab: the line where one was, or the list if that is out of sight.
      tabIndex={lines.some(({ index }) => index === roving.active) ? -1 : 0}
      onKeyDown={roving.onKeyDown}
      onFocus={roving.onFocus}
      className={`overflow-y-auto -outline-offset-2 ${className}`}
    >
      <div role="presentation" className="relative w-full" style={{ height: virtual.getTotalSize() }}>
        {lines.map((item) => (
          <div
            key={item.key}
            ref={fixed ? undefined : virtual.measureElement}
            data-index={item.index}
            role="listitem"
            aria-setsize={count}
            aria-posinset={item.index + 1}
            // The last line ends with the frame around the list.
            className={`absolute top-0 left-0 w-full ${item.index === count - 1 ? "*:border-b-0" : ""}`}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {line(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
