/** A JSON value as a tree that folds. Long lists and texts show their beginning first. */
import { useState } from "react";
import { Icon } from "./icon.tsx";

const SHOWN_ENTRIES = 100;
const SHOWN_TEXT = 2000;

interface JsonTreeProps {
  readonly value: unknown;
  /** Its name, for screen readers. */
  readonly label: string;
  /** How many levels are open at first. */
  readonly depth?: number;
  /** The outermost value is known to be an object: its keys stand by themselves. */
  readonly keysOnly?: boolean;
}

export function JsonTree({ value, label, depth = 2, keysOnly = false }: JsonTreeProps) {
  const isObject = typeof value === "object" && value !== null;
  return (
    <div role="group" aria-label={label} className="overflow-x-auto font-mono text-sm leading-6">
      {keysOnly && isObject ? <Entries value={value} depth={depth} /> : <Value value={value} depth={depth} />}
    </div>
  );
}

function Entries({ value, depth }: { readonly value: object; readonly depth: number }) {
  const [all, setAll] = useState(false);
  const entries = Object.entries(value);
  const shown = all ? entries : entries.slice(0, SHOWN_ENTRIES);
  return (
    <>
      {shown.map(([key, each]) => (
        <Value key={key} name={key} value={each} depth={depth - 1} />
      ))}
      {shown.length < entries.length && (
        <button type="button" className="text-accent underline" onClick={() => setAll(true)}>
          Show {entries.length - shown.length} more
        </button>
      )}
    </>
  );
}

function Value({
  name,
  value,
  depth,
}: {
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly depth: number;
}) {
  const key = name === undefined ? null : <span className="text-accent">{name}: </span>;
  if (typeof value !== "object" || value === null)
    return (
      <div className="break-words whitespace-pre-wrap">
        {key}
        <Scalar value={value} />
      </div>
    );
  return <Branch name={name} value={value} depth={depth} />;
}

function Branch({
  name,
  value,
  depth,
}: {
  readonly name: string | undefined;
  readonly value: object;
  readonly depth: number;
}) {
  const [open, setOpen] = useState(depth > 0);
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const size = list
    ? `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`
    : `${entries.length} ${entries.length === 1 ? "key" : "keys"}`;
  if (entries.length === 0)
    return (
      <div>
        {name !== undefined && <span className="text-accent">{name}: </span>}
        <span className="text-soft">{list ? "[]" : "{}"}</span>
      </div>
    );
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="inline-flex items-center gap-1 rounded hover:bg-hover"
      >
        <Icon name={open ? "down" : "right"} className="size-3 text-faint" />
        {name !== undefined && <span className="text-accent">{name}:</span>}
        <span className="text-faint">
          {list ? "[" : "{"} {size} {list ? "]" : "}"}
        </span>
      </button>
      {open && (
        <div className="ml-1.5 border-l border-line pl-3">
          <Entries value={value} depth={depth} />
        </div>
      )}
    </div>
  );
}

function Scalar({ value }: { readonly value: unknown }) {
  const [all, setAll] = useState(false);
  if (typeof value === "string") {
    const cut = !all && value.length > SHOWN_TEXT;
    return (
      <>
        <span className="text-ok">{JSON.stringify(cut ? value.slice(0, SHOWN_TEXT) : value)}</span>
        {cut && (
          <button type="button" className="ml-1 text-accent underline" onClick={() => setAll(true)}>
            Show all {value.length.toLocaleString("en")} characters
          </button>
        )}
      </>
    );
  }
  return <span className="text-info">{value === undefined ? "undefined" : JSON.stringify(value)}</span>;
}
