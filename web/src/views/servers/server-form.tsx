/** The fields of a server's entry. */
import { Checkbox, Field, Select, TextArea, TextInput } from "../../components/fields.tsx";
import type { Draft } from "./draft.ts";
import { RowsEditor } from "./rows-editor.tsx";

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
        <Field label="Id" required error={problems.id} hint="Part of the names of its tools.">
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
        <Field label="Name" hint="Display name; the id if empty.">
          {(attributes) => (
            <TextInput {...attributes} value={draft.name} onChange={(event) => set({ name: event.target.value })} />
          )}
        </Field>
      </div>
      <fieldset className="flex flex-wrap gap-4">
        <legend className="mb-1 font-medium">Type</legend>
        {(
          [
            ["command", "A program that the hub starts"],
            ["url", "A server at an address"],
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
        label="Connect when the hub starts"
        checked={draft.autoConnect}
        onChange={(event) => set({ autoConnect: event.target.checked })}
      />
      <details open={draft.other !== "" || problems.other !== undefined}>
        <summary className="text-soft">Other settings</summary>
        <div className="mt-2">
          <Field
            label="As JSON"
            error={problems.other}
            hint="Such as timeout, toolTimeout, tools, tags, restart or auth, as in the config file."
          >
            {(attributes) => (
              <TextArea
                {...attributes}
                mono
                value={draft.other}
                placeholder={'{ "tags": ["work"] }'}
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
        <Field label="Command" required error={problems.command}>
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              placeholder="npx"
              value={draft.command}
              onChange={(event) => set({ command: event.target.value })}
            />
          )}
        </Field>
        <Field label="Working directory">
          {(attributes) => (
            <TextInput {...attributes} mono value={draft.cwd} onChange={(event) => set({ cwd: event.target.value })} />
          )}
        </Field>
      </div>
      <Field label="Arguments" hint="One per line. Other users of the machine can see them: do not enter secrets here.">
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
      <RowsEditor label="Environment" noun="variable" rows={draft.env} onChange={(env) => set({ env })} />
    </>
  );
}

function UrlFields({ draft, problems, set }: PartProps) {
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-[minmax(0,1fr)_auto]">
        <Field label="Address" required error={problems.url}>
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              type="url"
              placeholder="https://example.com/mcp"
              value={draft.url}
              onChange={(event) => set({ url: event.target.value })}
            />
          )}
        </Field>
        <Field label="Transport">
          {(attributes) => (
            <Select
              {...attributes}
              value={draft.transport}
              options={[
                ["", "Find out"],
                ["http", "Streamable HTTP"],
                ["sse", "SSE"],
              ]}
              // The options are the ones above.
              onChange={(value) => set({ transport: value as Draft["transport"] })}
            />
          )}
        </Field>
      </div>
      <RowsEditor label="Headers" noun="header" rows={draft.headers} onChange={(headers) => set({ headers })} />
    </>
  );
}
