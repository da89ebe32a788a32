/** A JSON value as a tree that folds. Long lists and texts show their beginning first. */
import { useState } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
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
  /** Parts to look at. */
  readonly marks?: readonly Mark[];
}

export interface Mark {
  /** Keys and indexes that lead to the value. */
  readonly at: readonly (string | number)[];
  /** The part of a text; the whole value if absent. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly label: string;
}

/** A value and the marks in it, by the way that is left. */
interface Marked {
  readonly marks: readonly Mark[];
}

function below(marks: readonly Mark[], key: string): readonly Mark[] {
  return marks.flatMap((mark) => (String(mark.at[0]) === key ? [{ ...mark, at: mark.at.slice(1) }] : []));
}

export function JsonTree({ value, label, depth = 2, keysOnly = false, marks = [] }: JsonTreeProps) {
  const isObject = typeof value === "object" && value !== null;
  return (
    <div role="group" aria-label={label} className="overflow-x-auto font-mono text-sm leading-loose">
      {keysOnly && isObject ? (
        <Entries value={value} depth={depth} marks={marks} />
      ) : (
        <Value value={value} depth={depth} marks={marks} />
      )}
    </div>
  );
}

function Entries({ value, depth, marks }: Marked & { readonly value: object; readonly depth: number }) {
  const [all, setAll] = useState(false);
  const entries = Object.entries(value);
  const shown = all ? entries : entries.slice(0, SHOWN_ENTRIES);
  return (
    <>
      {shown.map(([key, each]) => (
        <Value key={key} name={key} value={each} depth={depth - 1} marks={below(marks, key)} />
      ))}
      {shown.length < entries.length && (
        <button type="button" className="text-accent underline" onClick={() => setAll(true)}>
          {t(components.showMore, { count: entries.length - shown.length })}
        </button>
      )}
    </>
  );
}

function Value({
  name,
  value,
  depth,
  marks,
}: Marked & {
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly depth: number;
}) {
  const whole = marks.find(({ at, from }) => at.length === 0 && from === undefined);
  const key = name === undefined ? null : <Name name={name} mark={whole} />;
  if (typeof value !== "object" || value === null)
    return (
      <div className="break-words whitespace-pre-wrap">
        {key}
        <Scalar value={value} marks={marks} />
      </div>
    );
  return <Branch name={name} value={value} depth={depth} marks={marks} mark={whole} />;
}

const MARK = "rounded-sm bg-warn-wash px-0.5 text-warn underline decoration-dotted underline-offset-2";

function Name({ name, mark }: { readonly name: string; readonly mark: Mark | undefined }) {
  if (mark === undefined) return <span className="text-accent">{name}: </span>;
  return (
    <>
      <mark title={mark.label} className={MARK}>
        {name}
        <span className="sr-only"> ({mark.label})</span>
      </mark>
      <span className="text-accent">: </span>
    </>
  );
}

function Branch({
  name,
  value,
  depth,
  marks,
  mark,
}: Marked & {
  readonly name: string | undefined;
  readonly value: object;
  readonly depth: number;
  /** Of the whole. */
  readonly mark: Mark | undefined;
}) {
  const [open, setOpen] = useState(depth > 0);
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const size = t(list ? components.entries : components.keys, { count: entries.length });
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
        className="inline-flex items-center gap-1 rounded-sm hover:bg-hover"
      >
        <Icon name={open ? "down" : "right"} className="size-3 text-faint" />
        {name !== undefined && <Name name={name} mark={mark} />}
        <span className="text-faint">
          {list ? "[" : "{"} {size} {list ? "]" : "}"}
        </span>
      </button>
      {open && (
        <div className="ml-1.5 border-l border-line pl-3">
          <Entries value={value} depth={depth} marks={marks} />
        </div>
      )}
    </div>
  );
}

/** The text in pieces: those between the marks, and those that are marked. Of marks that overlap the first counts. */
function piecesOf(text: string, marks: readonly Mark[]): readonly { readonly text: string; readonly label?: string }[] {
  const pieces: { text: string; label?: string }[] = [];
  let end = 0;
  for (const { from, to = 0, label } of marks.toSorted((a, b) => (a.from ?? 0) - (b.from ?? 0))) {
    if (from === undefined || from < end || to > text.length) continue;
    pieces.push({ text: text.slice(end, from) }, { text: text.slice(from, to), label });
    end = to;
  }
  pieces.push({ text: text.slice(end) });
  return pieces.filter((piece) => piece.text !== "");
}

function Scalar({ value, marks }: Marked & { readonly value: unknown }) {
  const [all, setAll] = useState(false);
  if (typeof value === "string") {
    const cut = !all && value.length > SHOWN_TEXT;
    return (
      <>
        <span className="text-ok">
          &quot;
          {piecesOf(cut ? value.slice(0, SHOWN_TEXT) : value, marks).map(({ text, label }, index) =>
            label === undefined ? (
              JSON.stringify(text).slice(1, -1)
            ) : (
              <mark key={index} title={label} className={MARK}>
                {JSON.stringify(text).slice(1, -1)}
                <span className="sr-only"> ({label})</span>
              </mark>
            ),
          )}
          &quot;
        </span>
        {cut && (
          <button type="button" className="ml-1 text-accent underline" onClick={() => setAll(true)}>
            {t(components.showAllText, { count: value.length })}
          </button>
        )}
      </>
    );
  }
  return <span className="text-info">{value === undefined ? "undefined" : JSON.stringify(value)}</span>;
}
