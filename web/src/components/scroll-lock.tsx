/** Stands in for react-remove-scroll, which Radix uses: the page behind a dialog does not scroll, and no style element is made. */
import { type ElementType, type ReactNode, type Ref, useEffect } from "react";

interface RemoveScrollProps {
  readonly as?: ElementType;
  readonly children?: ReactNode;
  readonly ref?: Ref<HTMLElement>;
  readonly enabled?: boolean;
  // What only the original understands.
  readonly allowPinchZoom?: boolean;
  readonly shards?: unknown;
}

let locks = 0;

export function RemoveScroll({ as: As = "div", enabled = true, allowPinchZoom, shards, ...rest }: RemoveScrollProps) {
  useEffect(() => {
    if (!enabled) return undefined;
    locks += 1;
    document.documentElement.style.overflow = "hidden";
    return () => {
      locks -= 1;
      if (locks === 0) document.documentElement.style.overflow = "";
    };
  }, [enabled]);
  void allowPinchZoom;
  void shards;
  return <As {...rest} />;
}
