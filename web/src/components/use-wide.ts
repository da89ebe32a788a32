/** Whether there is room for columns. */
import { useSyncExternalStore } from "react";

const wide = window.matchMedia("(min-width: 70rem)");

export function useWide(): boolean {
  return useSyncExternalStore(
    (listener) => {
      wide.addEventListener("change", listener);
      return () => wide.removeEventListener("change", listener);
    },
    () => wide.matches,
  );
}
