import { Tabs as RadixTabs } from "radix-ui";
import { type ReactNode, useEffect, useRef } from "react";
import { numberText } from "../text.ts";

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly count?: number | undefined;
  readonly content: ReactNode;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly value?: string;
  readonly onChange?: (id: string) => void;
}

/** Only the shown tab's content exists. */
export function Tabs({ label, tabs, value, onChange }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const counts = tabs.map(({ count }) => count).join(" ");
  // A link may open one that a phone has no room for, at once or when counts are known. Only the list is scrolled, not the page.
  useEffect(() => {
    const shown = list.current?.querySelector<HTMLElement>("[data-state=active]");
    if (!list.current || !shown) return;
    const hidden = shown.offsetLeft + shown.offsetWidth - list.current.clientWidth;
    if (hidden > list.current.scrollLeft) list.current.scrollLeft = hidden;
  }, [value, counts]);
  return (
    <RadixTabs.Root
      className="min-w-0"
      {...(value === undefined ? { defaultValue: tabs[0]?.id ?? "" } : { value })}
      {...(onChange === undefined ? {} : { onValueChange: onChange })}
    >
      <RadixTabs.List
        ref={list}
        aria-label={label}
        className="relative flex gap-0.5 overflow-x-auto border-b border-line px-2"
      >
        {tabs.map((tab) => (
          <RadixTabs.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px flex min-h-9 shrink-0 items-center gap-1.5 border-b-2 border-transparent px-2 text-soft -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink"
          >
            {tab.label}
            {tab.count !== undefined && <span className="text-xs text-faint">{numberText(tab.count)}</span>}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      {tabs.map((tab) => (
        <RadixTabs.Content key={tab.id} value={tab.id} className="-outline-offset-2">
          {tab.content}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}
