/** Names and values, as in env and headers. */
import { Button, IconButton } from "../../components/button.tsx";
import { TextInput } from "../../components/fields.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import type { Row } from "./draft.ts";

interface RowWords {
  readonly title: Message;
  readonly name: Message;
  readonly value: Message;
  readonly remove: Message;
  readonly add: Message;
}

export const VARIABLE_WORDS: RowWords = {
  title: serverWords.environment,
  name: serverWords.variableName,
  value: serverWords.variableValue,
  remove: serverWords.removeVariable,
  add: serverWords.addVariable,
};

export const HEADER_WORDS: RowWords = {
  title: serverWords.headers,
  name: serverWords.headerName,
  value: serverWords.headerValue,
  remove: serverWords.removeHeader,
  add: serverWords.addHeader,
};

const NAME_EXAMPLE = "NAME";
const VALUE_EXAMPLE = "secret://env/NAME";
const VARIABLE_EXAMPLE = "${NAME}";

interface RowsEditorProps {
  readonly words: RowWords;
  readonly rows: readonly Row[];
  readonly onChange: (rows: readonly Row[]) => void;
}

export function RowsEditor({ words, rows, onChange }: RowsEditorProps) {
  const set = (index: number, change: Partial<Row>): void =>
    onChange(rows.map((row, each) => (each === index ? { ...row, ...change } : row)));
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5">
      <legend className="mb-1 font-medium">{t(words.title)}</legend>
      {rows.map((row, index) => (
        <div key={index} className="grid grid-cols-[minmax(0,2fr)_minmax(0,3fr)_auto] gap-1.5">
          <TextInput
            mono
            aria-label={t(words.name, { number: index + 1 })}
            placeholder={NAME_EXAMPLE}
            value={row.name}
            onChange={(event) => set(index, { name: event.target.value })}
          />
          <TextInput
            mono
            aria-label={t(words.value, { number: index + 1 })}
            placeholder={VALUE_EXAMPLE}
            value={row.value}
            onChange={(event) => set(index, { value: event.target.value })}
          />
          <IconButton
            label={t(words.remove, { name: row.name === "" ? index + 1 : row.name })}
            icon="close"
            onClick={() => onChange(rows.filter((_, each) => each !== index))}
          />
        </div>
      ))}
      <div>
        <Button size="sm" variant="ghost" icon="plus" onClick={() => onChange([...rows, { name: "", value: "" }])}>
          {t(words.add)}
        </Button>
      </div>
      <p className="text-sm text-soft">
        <RichText
          message={serverWords.secretsHow}
          values={{
            reference: <code className="font-mono">{VALUE_EXAMPLE}</code>,
            variable: <code className="font-mono">{VARIABLE_EXAMPLE}</code>,
          }}
        />
      </p>
    </fieldset>
  );
}
