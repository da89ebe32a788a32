/** A list with the chosen entry beside it; where there is little room, one of the two. */
import type { ReactNode } from "react";

interface SplitProps {
  readonly list: ReactNode;
  /** Undefined: nothing is chosen. */
  readonly detail: ReactNode | undefined;
  /** The name of the chosen one, for screen readers. */
  readonly detailLabel?: string;
}

export function Split({ list, detail, detailLabel = "Details" }: SplitProps) {
  const chosen = detail !== undefined;
  return (
    <div className={chosen ? "grid gap-4 xl:grid-cols-[minmax(20rem,2fr)_minmax(0,3fr)]" : "grid gap-4"}>
      <div className={`min-w-0 ${chosen ? "hidden xl:sticky xl:top-4 xl:block xl:self-start" : ""}`}>{list}</div>
      {chosen && (
        <section aria-label={detailLabel} className="min-w-0 self-start rounded-lg border border-line bg-panel">
          {detail}
        </section>
      )}
    </div>
  );
}
