/** The records as lines. New ones on top leave those in sight where they are. */
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { Button } from "../../components/button.tsx";
import { useNow } from "../../components/time.tsx";
import { LINE_2_HEIGHT, LINE_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { AuditLine } from "./audit-line.tsx";
import { keyOf } from "./newest-records.ts";
import { useWide } from "../../components/use-wide.ts";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";

interface AuditListProps {
  readonly entries: readonly AuditEntry[];
  readonly chosen: string | undefined;
  readonly onTop: (isTop: boolean) => void;
  readonly onEnd: (() => void) | undefined;
  readonly foot: ReactNode;
}

export function AuditList({ entries, chosen, onTop, onEnd, foot }: AuditListProps) {
  const isWide = useWide() && chosen === undefined;
  const height = isWide ? LINE_HEIGHT : LINE_2_HEIGHT;
  const now = useNow(60_000);
  const box = useRef<HTMLDivElement>(null);
  const first = useRef<string>(undefined);
  const [unseen, setUnseen] = useState(0);
  const frame = (): HTMLElement | null => box.current?.querySelector<HTMLElement>("[role=list]") ?? null;

  useLayoutEffect(() => {
    const list = frame();
    const before = first.current;
    first.current = entries[0] === undefined ? undefined : keyOf(entries[0]);
    if (list === null || before === undefined || list.scrollTop === 0) return;
    const added = entries.findIndex((entry) => keyOf(entry) === before);
    if (added <= 0) return;
    list.scrollTop += added * height;
    setUnseen((count) => count + added);
  }, [entries]);

  return (
    <div
      ref={box}
      className="relative overflow-hidden rounded-lg border border-line bg-panel"
      onScrollCapture={() => {
        const isTop = (frame()?.scrollTop ?? 0) < 4;
        onTop(isTop);
        if (isTop) setUnseen(0);
      }}
    >
      {isWide && <Heads />}
      <div aria-live="polite" className={`absolute inset-x-0 z-10 flex justify-center ${isWide ? "top-10" : "top-2"}`}>
        {unseen > 0 && (
          <Button
            size="sm"
            variant="primary"
            className="shadow-float"
            onClick={() => {
              frame()?.scrollTo({ top: 0 });
              setUnseen(0);
            }}
          >
            {t(audit.newAbove, { count: unseen })}
          </Button>
        )}
      </div>
      <VirtualList
        label={t(audit.records)}
        count={entries.length}
        lineHeight={height}
        fixed
        lineKey={(index) => {
          const entry = entries[index];
          return entry === undefined ? String(index) : keyOf(entry);
        }}
        onEnd={onEnd}
        className="max-h-[calc(100dvh-17rem)]"
        line={(index) => {
          const entry = entries[index];
          if (entry === undefined) return null;
          return <AuditLine entry={entry} chosen={keyOf(entry) === chosen} isWide={isWide} now={now} />;
        }}
      />
      <p className="flex items-center gap-2 border-t border-line px-4 py-1.5 text-sm text-faint">{foot}</p>
    </div>
  );
}

/** Names of the columns, for the eye: every line says by itself what it is. */
function Heads() {
  return (
    <div
      aria-hidden="true"
      className="grid grid-cols-[8.5rem_9rem_minmax(0,1fr)_7rem_10rem_6rem_5rem] gap-3 border-b border-line px-4 py-1.5 text-sm text-faint"
    >
      <span>{t(traffic.time)}</span>
      <span>{t(traffic.outcome)}</span>
      <span>{t(audit.what)}</span>
      <span>{t(traffic.server)}</span>
      <span>{t(audit.who)}</span>
      <span>{t(traffic.door)}</span>
      <span className="text-right">{t(traffic.took)}</span>
    </div>
  );
}
