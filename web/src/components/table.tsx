import type { ReactNode } from "react";

interface TableProps {
  readonly label: string;
  /** Columns of numbers stand right. */
  readonly heads: readonly (string | { readonly number: string })[];
  /** The rows. */
  readonly children: ReactNode;
  readonly className?: string;
}

/** It scrolls by itself, so that the page does not, and can be reached by keyboard for that. */
export function Table({ label, heads, children, className = "max-h-96" }: TableProps) {
  return (
    <div tabIndex={0} role="region" aria-label={label} className={`overflow-auto -outline-offset-2 ${className}`}>
      <table className="w-full text-left text-sm">
        <caption className="sr-only">{label}</caption>
        <thead className="sticky top-0 bg-panel text-faint">
          <tr className="border-b border-line">
            {heads.map((head, index) => {
              const [text, side] = typeof head === "string" ? [head, ""] : [head.number, "text-right"];
              const place = `px-3 py-1.5 font-medium whitespace-nowrap ${side}`;
              return text === "" ? (
                <td key={index} className={place} />
              ) : (
                <th key={index} scope="col" className={place}>
                  {text}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">{children}</tbody>
      </table>
    </div>
  );
}

/** The cell that names its row. */
export function RowHead({ children }: { readonly children: ReactNode }) {
  return (
    <th scope="row" className="px-3 py-1.5 font-medium break-words">
      {children}
    </th>
  );
}

interface CellProps {
  readonly number?: boolean;
  readonly className?: string;
  readonly children?: ReactNode;
}

export function Cell({ number = false, className = "", children }: CellProps) {
  return <td className={`px-3 py-1.5 ${number ? "text-right whitespace-nowrap" : ""} ${className}`}>{children}</td>;
}
