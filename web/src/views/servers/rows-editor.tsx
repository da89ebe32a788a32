/** Names and values, as in env and headers. */
import { Button, IconButton } from "../../components/button.tsx";
import { TextInput } from "../../components/fields.tsx";
import type { Row } from "./draft.ts";

interface RowsEditorProps {
  readonly label: string;
  /** Of one row, such as "variable". */
  readonly noun: string;
  readonly rows: readonly Row[];
  readonly onChange: (rows: readonly Row[]) => void;
}

export function RowsEditor({ label, noun, rows, onChange }: RowsEditorProps) {
  const set = (index: number, change: Partial<Row>): void =>
    onChange(rows.map((row, each) => (each === index ? { ...row, ...change } : row)));
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5">
      <legend className="mb-1 font-medium">{label}</legend>
      {rows.map((row, index) => (
        <div key={index} className="grid grid-cols-[minmax(0,2fr)_minmax(0,3fr)_auto] gap-1.5">
          <TextInput
            mono
            aria-label={`Name of ${noun} ${index + 1}`}
            placeholder="NAME"
            value={row.name}
            onChange={(event) => set(index, { name: event.target.value })}
          />
          <TextInput
            mono
            aria-label={`Value of ${noun} ${index + 1}`}
            placeholder="secret://env/NAME"
            value={row.value}
            onChange={(event) => set(index, { value: event.target.value })}
          />
          <IconButton
            label={`Remove ${noun} ${row.name === "" ? index + 1 : row.name}`}
            icon="close"
            onClick={() => onChange(rows.filter((_, each) => each !== index))}
          />
        </div>
      ))}
      <div>
        <Button size="sm" variant="ghost" icon="plus" onClick={() => onChange([...rows, { name: "", value: "" }])}>
          Add a {noun}
        </Button>
      </div>
      <p className="text-sm text-soft">
        For secrets, enter a reference, not the value: <code className="font-mono">secret://env/NAME</code> or{" "}
        <code className="font-mono">{"${NAME}"}</code>.
      </p>
    </fieldset>
  );
}
