/** The frame of a view: its heading, its actions, its sections. */
import { type ReactNode, useEffect } from "react";

interface PageProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

let view = "";
let waiting = 0;

function writeTitle(): void {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${view === "" ? "" : `${view} · `}Toolcrib`;
}

/** The number of calls that wait, in front of the title. */
export function showWaiting(count: number): void {
  waiting = count;
  writeTitle();
}

export function Page({ title, description, actions, children }: PageProps) {
  useEffect(() => {
    view = title;
    writeTitle();
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-[1500px] flex-col gap-4 p-4 md:p-6">
      <header className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <h1 className="text-xl font-semibold">{title}</h1>
          {description !== undefined && <p className="text-soft">{description}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Its content touches the border, as lists do. */
  readonly flush?: boolean;
  readonly className?: string;
}

export function Section({ title, actions, children, flush = false, className = "" }: SectionProps) {
  return (
    <section aria-label={title} className={`min-w-0 rounded-lg border border-line bg-panel ${className}`}>
      <div className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-1.5">
        <h2 className="font-semibold">{title}</h2>
        {actions}
      </div>
      <div className={flush ? "" : "p-4"}>{children}</div>
    </section>
  );
}

/** A bar of filters above a list. */
export function Toolbar({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div className="@container">
      <div role="group" aria-label={label} className="flex flex-wrap items-center gap-2">
        {children}
      </div>
    </div>
  );
}

/** Names on the left, values on the right. */
export function KeyValues({ rows }: { readonly rows: readonly (readonly [label: string, value: ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(6rem,auto)_minmax(0,1fr)] gap-x-4 gap-y-1.5">
      {rows.map(([label, value]) => (
        <div key={label} className="contents">
          <dt className="text-faint">{label}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
