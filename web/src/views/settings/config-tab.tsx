import { useState } from "react";
import type { ConfigView } from "../../../../src/contract/settings-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { Toolbar } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty } from "../../components/states.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { settings } from "../../messages/settings.ts";
import {
  type ConfigSection,
  type ConfigValue,
  isLarge,
  ORIGIN_WORDS,
  originOptions,
  sectionsOf,
  valueText,
} from "./config-sections.ts";

interface ConfigTabProps {
  readonly config: ConfigView;
  readonly q: string | undefined;
  readonly origin: string | undefined;
  readonly onChange: (next: { q?: string | undefined; origin?: string | undefined }) => void;
}

export function ConfigTab({ config, q, origin, onChange }: ConfigTabProps) {
  const sections = sectionsOf(config.values, { q, origin });
  return (
    <div className="flex flex-col gap-4 p-4">
      {config.warnings.map((warning, index) => (
        <p key={index} className="flex items-start gap-2 rounded-md bg-warn-wash px-3 py-2 text-ink">
          <Icon name="warning" className="mt-0.5 size-4 text-warn" />
          <span className="min-w-0 break-words whitespace-pre-wrap">{warning}</span>
        </p>
      ))}
      <p className="text-soft">
        {config.files.length === 0 ? (
          t(settings.givenInCode)
        ) : (
          <RichText
            message={settings.readFrom}
            values={{
              files: config.files.map((file, index) => (
                <span key={file}>
                  {index > 0 && ", "}
                  <code className="font-mono text-sm break-all">{file}</code>
                </span>
              )),
            }}
          />
        )}
      </p>
      <Toolbar label={t(components.filters)}>
        <SearchBox
          label={t(settings.find)}
          value={q ?? ""}
          onChange={(text) => onChange({ q: text === "" ? undefined : text })}
        />
        <Select
          aria-label={t(settings.origin)}
          value={origin ?? ""}
          options={[
            ["", t(settings.allOrigins, { count: config.values.length })],
            ...originOptions(config.values, origin),
          ]}
          onChange={(value) => onChange({ origin: value === "" ? undefined : value })}
        />
      </Toolbar>
      {sections.length === 0 ? (
        <Empty
          title={t(settings.noneFit)}
          icon="search"
          action={
            <Button onClick={() => onChange({ q: undefined, origin: undefined })}>{t(components.clearFilters)}</Button>
          }
        />
      ) : (
        sections.map((section) => <SectionValues key={section.name} section={section} />)
      )}
    </div>
  );
}

function SectionValues({ section }: { readonly section: ConfigSection }) {
  return (
    <section aria-label={section.name}>
      <h2 className="mb-1 font-mono font-semibold">{section.name}</h2>
      <ul className="divide-y divide-line rounded-md border border-line">
        {section.values.map((value) => (
          <ValueLine key={value.key} value={value} />
        ))}
      </ul>
    </section>
  );
}

function ValueLine({ value: { key, value, origin, where } }: { readonly value: ConfigValue }) {
  const [open, setOpen] = useState(false);
  const large = isLarge(value);
  return (
    <li className="grid gap-x-4 gap-y-1 px-3 py-1.5 md:items-baseline md:grid-cols-[minmax(10rem,2fr)_minmax(0,3fr)_minmax(9rem,2fr)]">
      <span className="font-mono text-sm break-all">{key}</span>
      <div className="min-w-0">
        {large ? (
          <>
            <button
              type="button"
              aria-expanded={open}
              onClick={() => setOpen(!open)}
              className="flex max-w-full items-center gap-1 rounded-sm text-left hover:bg-hover"
            >
              <Icon name={open ? "down" : "right"} className="size-3 text-faint" />
              <span className="truncate font-mono text-sm text-soft">{valueText(value)}</span>
            </button>
            {open && <JsonTree value={value} label={key} depth={3} />}
          </>
        ) : (
          <span className="font-mono text-sm break-words">
            {value === "" ? <span className="text-faint">{t(settings.emptyText)}</span> : valueText(value)}
          </span>
        )}
      </div>
      <div className="flex min-w-0 flex-wrap items-center gap-x-2">
        <Badge tone={ORIGIN_WORDS[origin].tone}>{t(ORIGIN_WORDS[origin].word)}</Badge>
        {where !== undefined && (
          <span className="min-w-0 truncate text-sm text-soft" title={where}>
            {lastPart(where)}
          </span>
        )}
      </div>
    </li>
  );
}

/** The name of the file with its line; all of it shows on hover, and stands above. */
function lastPart(where: string): string {
  return where.slice(Math.max(where.lastIndexOf("/"), where.lastIndexOf("\\")) + 1);
}
