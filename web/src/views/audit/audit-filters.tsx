import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field, SearchBox, Select, TextInput } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { Toolbar } from "../../components/page.tsx";
import { components } from "../../messages/components.ts";
import { audit } from "../../messages/audit.ts";
import { type Message, t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { useOperation } from "../../state/queries.ts";
import { doorOptions } from "../sessions/session-words.ts";
import {
  type AuditFilter,
  EXACT,
  furtherCount,
  isFiltered,
  isoTime,
  localTime,
  NO_FILTER,
  OUTCOMES,
  SPANS,
  spanOf,
  TYPES,
} from "./audit-filter.ts";

interface FiltersProps {
  readonly filter: AuditFilter;
  readonly onChange: (next: AuditFilter) => void;
}

const TOOL_EXAMPLE = "files__*";
const CLIENT_EXAMPLE = "cursor";
/** On a phone two stand in a row. */
const IN_PAIRS = "max-sm:flex-1 max-sm:basis-36";

function orNone(text: string): string | undefined {
  return text === "" ? undefined : text;
}

export function AuditFilters({ filter, onChange }: FiltersProps) {
  const further = furtherCount(filter);
  const [open, setOpen] = useState(further > 0);
  const span = spanOf(filter);
  return (
    <div className="flex flex-col gap-2">
      <Toolbar label={t(components.filters)}>
        <SearchBox
          label={t(audit.findInLog)}
          placeholder={t(audit.findWhat)}
          value={filter.q ?? ""}
          onChange={(q) => onChange({ q: orNone(q) })}
          className="min-w-44 flex-1 basis-full sm:max-w-80 sm:basis-auto"
        />
        <Select
          aria-label={t(audit.type)}
          className={IN_PAIRS}
          value={filter.type ?? ""}
          options={[["", t(audit.allTypes)], ...worded(TYPES)]}
          onChange={(type) => onChange({ type: orNone(type) })}
        />
        <Select
          aria-label={t(traffic.outcome)}
          className={IN_PAIRS}
          value={filter.outcome ?? ""}
          options={[
            ["", t(traffic.anyOutcome)],
            ...withAsked(
              [["failed", t(traffic.anyFailure)], ...OUTCOMES.map((code) => [code, code] as const)],
              filter.outcome,
            ),
          ]}
          onChange={(outcome) => onChange({ outcome: orNone(outcome) })}
        />
        <Select
          aria-label={t(traffic.time)}
          className={IN_PAIRS}
          value={span}
          options={[["", t(audit.anyTime)], ...worded(SPANS), [EXACT, t(audit.exactTimes)]]}
          onChange={(value) => {
            if (value === EXACT) setOpen(true);
            else onChange({ since: orNone(value) });
          }}
        />
        <Button variant="ghost" icon={open ? "down" : "right"} aria-expanded={open} onClick={() => setOpen(!open)}>
          {!open && further > 0 ? t(audit.moreFiltersSet, { count: further }) : t(audit.moreFilters)}
        </Button>
        {isFiltered(filter) && (
          <Button variant="ghost" icon="close" onClick={() => onChange(NO_FILTER)}>
            {t(traffic.clear)}
          </Button>
        )}
      </Toolbar>
      {open && <Further filter={filter} onChange={onChange} />}
      <Chips filter={filter} onChange={onChange} />
    </div>
  );
}

function worded(options: readonly (readonly [value: string, word: Message])[]): readonly (readonly [string, string])[] {
  return options.map(([value, word]) => [value, t(word)] as const);
}

function withAsked(
  options: readonly (readonly [string, string])[],
  asked: string | undefined,
): readonly (readonly [string, string])[] {
  return asked === undefined || options.some(([value]) => value === asked) ? options : [...options, [asked, asked]];
}

function Further({ filter, onChange }: FiltersProps) {
  const servers = useOperation("listServers", { limit: 1000 });
  const known = servers.data?.servers.map((server) => [server.id, server.name] as const) ?? [];
  return (
    <div
      role="group"
      aria-label={t(audit.moreFilters)}
      className="grid gap-3 rounded-lg border border-line bg-panel p-3 sm:grid-cols-2 lg:grid-cols-3"
    >
      <Field label={t(traffic.server)}>
        {(attributes) => (
          <Select
            {...attributes}
            className="w-full max-w-none"
            value={filter.server ?? ""}
            options={[
              ["", t(traffic.allServers)],
              ...withAsked([...known, ["local", t(traffic.localTools)]], filter.server),
            ]}
            onChange={(server) => onChange({ server: orNone(server) })}
          />
        )}
      </Field>
      <Paused
        label={t(traffic.tool)}
        placeholder={TOOL_EXAMPLE}
        value={filter.name}
        onChange={(name) => onChange({ name })}
      />
      <Paused label={t(traffic.user)} value={filter.user} onChange={(user) => onChange({ user })} />
      <Paused
        label={t(traffic.client)}
        placeholder={CLIENT_EXAMPLE}
        value={filter.client}
        onChange={(client) => onChange({ client })}
      />
      <Field label={t(traffic.door)}>
        {(attributes) => (
          <Select
            {...attributes}
            className="w-full max-w-none"
            value={filter.door ?? ""}
            options={[["", t(audit.allDoors)], ...doorOptions([{ door: "cli" }], filter.door)]}
            onChange={(door) => onChange({ door: orNone(door) })}
          />
        )}
      </Field>
      <Field label={t(audit.from)}>
        {(attributes) => (
          <TextInput
            {...attributes}
            type="datetime-local"
            value={localTime(filter.since)}
            onChange={(event) => onChange({ since: isoTime(event.target.value) })}
          />
        )}
      </Field>
      <Field label={t(audit.until)}>
        {(attributes) => (
          <TextInput
            {...attributes}
            type="datetime-local"
            value={localTime(filter.until)}
            onChange={(event) => onChange({ until: isoTime(event.target.value) })}
          />
        )}
      </Field>
    </div>
  );
}

interface PausedProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

/** Holds when Enter is pressed or the field is left, so that no half name is asked for. */
function Paused({ label, placeholder, value = "", onChange }: PausedProps) {
  const [text, setText] = useState(value);
  const [asked, setAsked] = useState(value);
  if (asked !== value) {
    setAsked(value);
    setText(value);
  }
  const tell = (): void => {
    if (text.trim() !== value) onChange(orNone(text.trim()));
  };
  return (
    <Field label={label}>
      {(attributes) => (
        <TextInput
          {...attributes}
          mono
          placeholder={placeholder}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onBlur={tell}
          onKeyDown={(event) => {
            if (event.key === "Enter") tell();
          }}
        />
      )}
    </Field>
  );
}

/** Filters that come from a link and have no field. */
function Chips({ filter, onChange }: FiltersProps) {
  const chips = [
    ["callId", t(traffic.call), filter.callId],
    ["session", t(traffic.session), filter.session],
  ] as const;
  const set = chips.filter(([, , value]) => value !== undefined);
  if (set.length === 0) return null;
  return (
    <ul aria-label={t(audit.fromLinks)} className="flex flex-wrap gap-2">
      {set.map(([key, word, value]) => (
        <li key={key}>
          <button
            type="button"
            onClick={() => onChange({ [key]: undefined })}
            title={t(audit.removeFilter)}
            className="inline-flex max-w-full items-center gap-1.5 rounded-full border border-line-strong bg-panel px-3 py-0.5 text-sm hover:bg-hover"
          >
            <span className="text-soft">{word}</span>
            <span className="min-w-0 font-mono break-all">{value}</span>
            <Icon name="close" className="size-3" />
            <span className="sr-only">{t(audit.remove)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
