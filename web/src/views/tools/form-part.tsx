/** Inputs for a part of a schema. A part that is not given is `undefined`. */
import { createContext, type ReactNode, useContext, useId, useState } from "react";
import { Button, IconButton } from "../../components/button.tsx";
import { Checkbox, Field, Select, TextArea, TextInput } from "../../components/fields.tsx";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { fieldOf, type FormField } from "./form-field.ts";
import { startValue, withKey } from "./form-value.ts";
import { isObject, type Schema } from "./schema.ts";

export interface FormContext {
  readonly root: Schema;
  /** Problems, by path. */
  readonly problems: ReadonlyMap<string, string>;
  /** A text that is no JSON has no value to show for it; it is told here. */
  readonly setBroken: (path: string, broken: boolean) => void;
}

export const FormShared = createContext<FormContext>({ root: {}, problems: new Map(), setBroken: () => {} });

export interface PartProps {
  readonly label: string;
  readonly path: string;
  readonly schema: Schema;
  readonly value: unknown;
  readonly required: boolean;
  readonly depth: number;
  /** Something around it already has a frame and a name. */
  readonly bare?: boolean;
  readonly onChange: (value: unknown) => void;
}

type KindProps<Kind extends FormField["kind"]> = PartProps & { readonly field: Extract<FormField, { kind: Kind }> };

export function FormPart(props: PartProps): ReactNode {
  const { root } = useContext(FormShared);
  const field = fieldOf(props.schema, root, { name: props.label, depth: props.depth });
  switch (field.kind) {
    case "text":
      return <TextPart {...props} field={field} />;
    case "number":
      return <NumberPart {...props} field={field} />;
    case "boolean":
      return <BooleanPart {...props} field={field} />;
    case "one-of":
      return <OneOfPart {...props} field={field} />;
    case "list":
      return <ListPart {...props} field={field} />;
    case "object":
      return <ObjectPart {...props} field={field} />;
    case "choice":
      return <ChoicePart {...props} field={field} />;
    case "json":
      return <JsonPart {...props} field={field} />;
  }
}

function Labelled({
  label,
  path,
  required,
  field,
  children,
}: Pick<PartProps, "label" | "path" | "required"> & {
  readonly field: FormField;
  readonly children: Parameters<typeof Field>[0]["children"];
}) {
  const { problems } = useContext(FormShared);
  return (
    <Field
      label={label}
      required={required}
      error={problems.get(path)}
      {...(field.description === undefined ? {} : { hint: field.description })}
    >
      {children}
    </Field>
  );
}

function TextPart(props: KindProps<"text">) {
  const { field, value, onChange } = props;
  const shown = typeof value === "string" ? value : "";
  const take = (text: string): void => onChange(text === "" ? undefined : text);
  return (
    <Labelled {...props}>
      {(attributes) =>
        field.long ? (
          <TextArea {...attributes} mono rows={4} value={shown} onChange={(event) => take(event.target.value)} />
        ) : (
          <TextInput
            {...attributes}
            mono
            value={shown}
            {...(field.format === undefined ? {} : { placeholder: field.format })}
            onChange={(event) => take(event.target.value)}
          />
        )
      }
    </Labelled>
  );
}

function NumberPart(props: KindProps<"number">) {
  const { field, value, onChange } = props;
  const [text, setText] = useState(typeof value === "number" ? String(value) : "");
  return (
    <Labelled {...props}>
      {(attributes) => (
        <TextInput
          {...attributes}
          mono
          inputMode={field.integer ? "numeric" : "decimal"}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            onChange(event.target.value.trim() === "" ? undefined : Number(event.target.value));
          }}
        />
      )}
    </Labelled>
  );
}

function BooleanPart(props: KindProps<"boolean">) {
  const { label, field, value, required, onChange } = props;
  if (required)
    return (
      <div>
        <Checkbox
          label={label}
          checked={value === true}
          className="font-medium"
          onChange={(event) => onChange(event.target.checked)}
        />
        {field.description !== undefined && <p className="text-sm text-soft">{field.description}</p>}
      </div>
    );
  return (
    <Labelled {...props}>
      {(attributes) => (
        <Select
          {...attributes}
          value={typeof value === "boolean" ? String(value) : ""}
          options={[
            ["", t(toolWords.notGiven)],
            ["true", "true"],
            ["false", "false"],
          ]}
          onChange={(text) => onChange(text === "" ? undefined : text === "true")}
        />
      )}
    </Labelled>
  );
}

function OneOfPart(props: KindProps<"one-of">) {
  const { field, value, onChange } = props;
  const at = field.values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
  return (
    <Labelled {...props}>
      {(attributes) => (
        <Select
          {...attributes}
          value={String(at)}
          options={[
            ["-1", t(toolWords.notGiven)],
            ...field.values.map(
              (each, index) =>
                [
                  String(index),
                  field.names?.[index] ?? (typeof each === "string" ? each : JSON.stringify(each)),
                ] as const,
            ),
          ]}
          onChange={(index) => onChange(field.values[Number(index)])}
        />
      )}
    </Labelled>
  );
}

function ListPart(props: KindProps<"list">) {
  const { root } = useContext(FormShared);
  const { label, path, field, value, required, depth, onChange } = props;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const change = (next: readonly unknown[]): void => onChange(next.length === 0 && !required ? undefined : next);
  return (
    <Group label={label} path={path} required={required} description={field.description}>
      {entries.map((entry, index) => (
        // Entries have no other identity than their place.
        <div key={`${entries.length} ${index}`} className="flex items-start gap-1.5">
          <div className="min-w-0 flex-1">
            <FormPart
              label={`${label} ${index + 1}`}
              path={`${path}.${index}`}
              schema={field.items}
              value={entry}
              required
              depth={depth + 1}
              onChange={(next) => change(entries.map((each, at) => (at === index ? next : each)))}
            />
          </div>
          <IconButton
            label={t(toolWords.removeEntry, { label, number: index + 1 })}
            icon="close"
            onClick={() => change(entries.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <div>
        <Button size="sm" icon="plus" onClick={() => change([...entries, startValue(field.items, root) ?? undefined])}>
          {t(toolWords.addEntry)}
        </Button>
      </div>
    </Group>
  );
}

function ObjectPart(props: KindProps<"object">) {
  const { root } = useContext(FormShared);
  const { label, path, field, value, required, depth, onChange } = props;
  const given = isObject(value) ? value : {};
  const parts = field.properties.map((property) => (
    <FormPart
      key={property.name}
      label={property.name}
      path={path === "" ? property.name : `${path}.${property.name}`}
      schema={property.schema}
      value={given[property.name]}
      required={property.required}
      depth={depth + 1}
      onChange={(next) => onChange(withKey(given, property.name, next))}
    />
  ));
  // The arguments themselves need no frame.
  if (path === "" || props.bare === true) return <div className="flex flex-col gap-4">{parts}</div>;
  return (
    <Group label={label} path={path} required={required} description={field.description}>
      {value === undefined ? (
        <div>
          <Button size="sm" icon="plus" onClick={() => onChange(startValue(props.schema, root, true, depth) ?? {})}>
            {t(toolWords.give, { label })}
          </Button>
        </div>
      ) : (
        <>
          {parts}
          {!required && (
            <div>
              <Button size="sm" variant="ghost" icon="close" onClick={() => onChange(undefined)}>
                {t(toolWords.leaveOut, { label })}
              </Button>
            </div>
          )}
        </>
      )}
    </Group>
  );
}

function ChoicePart(props: KindProps<"choice">) {
  const { root } = useContext(FormShared);
  const { label, path, field, required, depth, onChange } = props;
  const [chosen, setChosen] = useState(() => (props.value === undefined ? -1 : 0));
  const option = field.options[chosen];
  return (
    <Group label={label} path={path} required={required} description={field.description}>
      <Select
        aria-label={t(toolWords.kindOf, { label })}
        value={String(chosen)}
        options={[
          ["-1", t(required ? toolWords.choose : toolWords.notGiven)],
          ...field.options.map((each, index) => [String(index), each.label] as const),
        ]}
        onChange={(index) => {
          const next = field.options[Number(index)];
          setChosen(Number(index));
          onChange(next === undefined ? undefined : startValue(next.schema, root, true, depth + 1));
        }}
      />
      {option !== undefined && (
        <FormPart
          key={chosen}
          label={option.label}
          path={path}
          schema={option.schema}
          value={props.value}
          required
          bare
          depth={depth + 1}
          onChange={onChange}
        />
      )}
    </Group>
  );
}

function JsonPart(props: KindProps<"json">) {
  const { setBroken } = useContext(FormShared);
  const { path, value, onChange } = props;
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, undefined, 2));
  const take = (next: string): void => {
    setText(next);
    let parsed: unknown;
    let broken = false;
    try {
      parsed = next.trim() === "" ? undefined : JSON.parse(next);
    } catch {
      broken = true;
    }
    setBroken(path, broken);
    onChange(parsed);
  };
  return (
    <Labelled {...props}>
      {(attributes) => (
        <TextArea
          {...attributes}
          mono
          rows={3}
          placeholder="{ … }"
          value={text}
          onChange={(event) => take(event.target.value)}
        />
      )}
    </Labelled>
  );
}

interface GroupProps {
  readonly label: string;
  readonly path: string;
  readonly required: boolean;
  readonly description: string | undefined;
  readonly children: ReactNode;
}

function Group({ label, path, required, description, children }: GroupProps) {
  const { problems } = useContext(FormShared);
  const id = useId();
  const problem = problems.get(path);
  return (
    <fieldset
      aria-describedby={`${id}-about`}
      className="flex min-w-0 flex-col gap-3 rounded-md border border-line p-3"
    >
      <legend className="px-1 font-medium">
        {label}
        {required && (
          <span aria-hidden="true" className="text-bad">
            {" *"}
          </span>
        )}
      </legend>
      <div id={`${id}-about`} className="contents text-sm">
        {description !== undefined && <p className="text-sm text-soft">{description}</p>}
        {problem !== undefined && <p className="text-sm text-bad">{problem}</p>}
      </div>
      {children}
    </fieldset>
  );
}
