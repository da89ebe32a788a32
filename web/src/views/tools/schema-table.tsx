/** A schema that people can read. */
import { Badge } from "../../components/badge.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import type { Schema } from "./schema.ts";
import { type SchemaRow, schemaRows } from "./schema-rows.ts";

const SHOWN_VALUES = 12;

export function SchemaTable({ schema, label }: { readonly schema: Schema; readonly label: string }) {
  const rows = schemaRows(schema);
  if (rows.length === 0) return <p className="text-soft">{t(toolWords.noRows)}</p>;
  return (
    <ul aria-label={label} className="divide-y divide-line rounded-md border border-line">
      {rows.map((row) => (
        <Row key={row.path} row={row} />
      ))}
    </ul>
  );
}

// Written out, because the stylesheet holds only classes that it finds in the sources.
const INDENT = ["pl-3", "pl-8", "pl-12", "pl-16", "pl-20", "pl-24"];

function Row({ row }: { readonly row: SchemaRow }) {
  return (
    <li className={`flex flex-col gap-0.5 py-2 pr-3 ${INDENT[row.depth] ?? "pl-24"}`}>
      <div className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-mono text-sm font-semibold break-all">{row.name}</span>
        <span className="font-mono text-sm break-words text-soft">{row.type}</span>
        {row.required && <Badge tone="accent">{t(toolWords.required)}</Badge>}
        {row.defaultText !== undefined && (
          <span className="text-sm text-soft">
            <RichText
              message={toolWords.defaultIs}
              values={{ value: <code className="font-mono break-all">{row.defaultText}</code> }}
            />
          </span>
        )}
      </div>
      {row.description !== undefined && (
        <div className="text-sm text-soft">
          <Markdown text={row.description} />
        </div>
      )}
      {row.values !== undefined && (
        <p className="text-sm break-words">
          <span className="text-faint">{t(toolWords.oneOf)} </span>
          <code className="font-mono">{row.values.slice(0, SHOWN_VALUES).join(", ")}</code>
          {row.values.length > SHOWN_VALUES && ` ${t(toolWords.andMore, { count: row.values.length - SHOWN_VALUES })}`}
        </p>
      )}
      {row.limits.length > 0 && <p className="font-mono text-xs break-all text-faint">{row.limits.join(" · ")}</p>}
    </li>
  );
}
