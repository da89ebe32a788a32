/** The fields of a server's entry. */
import { Checkbox, Field, Select, TextArea, TextInput } from "../../components/fields.tsx";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import type { Draft } from "./draft.ts";
import { HEADER_WORDS, RowsEditor, VARIABLE_WORDS } from "./rows-editor.tsx";

const OTHER_EXAMPLE = '{ "tags": ["work"] }';
const COMMAND_EXAMPLE = "npx";
const URL_EXAMPLE = "https://example.com/mcp";
const TRANSPORTS = [
  ["http", "Streamable HTTP"],
  ["sse", "SSE"],
] as const;

interface ServerFormProps {
  readonly draft: Draft;
  readonly problems: Readonly<Partial<Record<keyof Draft, string>>>;
  /** A saved server keeps its id. */
  readonly fixedId: boolean;
  readonly onChange: (draft: Draft) => void;
}

export function ServerForm({ draft, problems, fixedId, onChange }: ServerFormProps) {
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  return (
    <div className="flex flex-col gap-4">
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t(serverWords.id)} required error={problems.id} hint={t(serverWords.idHint)}>
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              value={draft.id}
              readOnly={fixedId}
              onChange={(event) => set({ id: event.target.value })}
            />
          )}
        </Field>
        <Field label={t(serverWords.name)} hint={t(serverWords.nameHint)}>
          {(attributes) => (
            <TextInput {...attributes} value={draft.name} onChange={(event) => set({ name: event.target.value })} />
          )}
        </Field>
      </div>
      <fieldset className="flex flex-wrap gap-4">
        <legend className="mb-1 font-medium">{t(serverWords.type)}</legend>
        {(
          [
            ["command", t(serverWords.program)],
            ["url", t(serverWords.atAddress)],
          ] as const
        ).map(([kind, label]) => (
          <label key={kind} className="inline-flex items-center gap-2">
            <input
              type="radio"
              name="kind"
              className="accent-accent"
              checked={draft.kind === kind}
              onChange={() => set({ kind })}
            />
            {label}
          </label>
        ))}
      </fieldset>
      {draft.kind === "command" ? (
        <CommandFields draft={draft} problems={problems} set={set} />
      ) : (
        <UrlFields draft={draft} problems={problems} set={set} />
      )}
      <Checkbox
        label={t(serverWords.connectAtStart)}
        checked={draft.autoConnect}
        onChange={(event) => set({ autoConnect: event.target.checked })}
      />
      <details open={draft.other !== "" || problems.other !== undefined}>
        <summary className="text-soft">{t(serverWords.other)}</summary>
        <div className="mt-2">
          <Field label={t(serverWords.asJson)} error={problems.other} hint={t(serverWords.otherHint)}>
            {(attributes) => (
              <TextArea
                {...attributes}
                mono
                value={draft.other}
                placeholder={OTHER_EXAMPLE}
                onChange={(event) => set({ other: event.target.value })}
              />
            )}
          </Field>
        </div>
      </details>
    </div>
  );
}

interface PartProps extends Pick<ServerFormProps, "draft" | "problems"> {
  readonly set: (change: Partial<Draft>) => void;
}

function CommandFields({ draft, problems, set }: PartProps) {
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t(serverWords.command)} required error={problems.command}>
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              placeholder={COMMAND_EXAMPLE}
              value={draft.command}
              onChange={(event) => set({ command: event.target.value })}
            />
          )}
        </Field>
        <Field label={t(serverWords.cwd)}>
          {(attributes) => (
            <TextInput {...attributes} mono value={draft.cwd} onChange={(event) => set({ cwd: event.target.value })} />
          )}
        </Field>
      </div>
      <Field label={t(serverWords.arguments)} hint={t(serverWords.argumentsHint)}>
        {(attributes) => (
          <TextArea
            {...attributes}
            mono
            rows={Math.min(8, Math.max(3, draft.args.length))}
            value={draft.args.join("\n")}
            onChange={(event) => set({ args: event.target.value === "" ? [] : event.target.value.split("\n") })}
          />
        )}
      </Field>
      <RowsEditor words={VARIABLE_WORDS} rows={draft.env} onChange={(env) => set({ env })} />
    </>
  );
}

function UrlFields({ draft, problems, set }: PartProps) {
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-[minmax(0,1fr)_auto]">
        <Field label={t(serverWords.address)} required error={problems.url}>
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              type="url"
              placeholder={URL_EXAMPLE}
              value={draft.url}
              onChange={(event) => set({ url: event.target.value })}
            />
          )}
        </Field>
        <Field label={t(serverWords.transport)}>
          {(attributes) => (
            <Select
              {...attributes}
              value={draft.transport}
              options={[["", t(serverWords.findOut)], ...TRANSPORTS]}
              // The options are the ones above.
              onChange={(value) => set({ transport: value as Draft["transport"] })}
            />
          )}
        </Field>
      </div>
      <RowsEditor words={HEADER_WORDS} rows={draft.headers} onChange={(headers) => set({ headers })} />
    </>
  );
}
