/** Light or dark: what the person chose on this machine, else what the system says. */
import { useSyncExternalStore } from "react";

type Theme = "light" | "dark";

const KEY = "toolcrib.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosen(): Theme | undefined {
  try {
    const text = localStorage.getItem(KEY);
    return text === "light" || text === "dark" ? text : undefined;
  } catch {
    // Some browsers refuse storage; the system's word does.
    return undefined;
  }
}

function current(): Theme {
  return chosen() ?? (system.matches ? "dark" : "light");
}

function apply(): void {
  document.documentElement.dataset["theme"] = current();
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The chosen theme; `system` if there is none. */
export function useThemeChoice(): readonly [choice: Theme | "system", choose: (choice: Theme | "system") => void] {
  const choice = useSyncExternalStore(subscribe, () => chosen() ?? "system");
  return [
    choice,
    (next) => {
      try {
        if (next === "system") localStorage.removeItem(KEY);
        else localStorage.setItem(KEY, next);
      } catch {
        // Then it cannot be kept.
      }
      apply();
    },
  ];
}

/** The theme that is shown. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, current);
}
