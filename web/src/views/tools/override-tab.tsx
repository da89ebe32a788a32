/** The definition of a tool that callers see: a form, and beside it what a model gets and what that costs. */
import { useEffect, useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { Checkbox, Field, Select, TextArea, TextInput } from "../../components/fields.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox, Loaded } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import {
  costText,
  modeOf,
  objectIn,
  type OverrideDraft,
  type ParameterMode,
  shownValue,
  typedValue,
  withDropped,
  withInner,
  withMode,
  withOwn,
} from "./override-draft.ts";
import { merged, propertiesOf, textOf } from "./schema.ts";

type Overridden = OutputOf<"overrideTool">;

const PREVIEW_DELAY_MS = 250;

interface OverrideTabProps {
  readonly tool: ToolInfo;
  /** It has another public name from now on. */
  readonly onRename: (name: string) => void;
}

export function OverrideTab({ tool, onRename }: OverrideTabProps) {
  const present = useOperation("overrideTool", { name: tool.name });
  return (
    <div className="p-4">
      <Loaded query={present}>
        {(found) => <Form key={JSON.stringify(found.override)} tool={tool} present={found} onRename={onRename} />}
      </Loaded>
    </div>
  );
}

function Form({ tool, present, onRename }: OverrideTabProps & { readonly present: Overridden }) {
  const [draft, setDraft] = useState<OverrideDraft>(present.override);
  const [asked, setAsked] = useState<OverrideDraft>(present.override);
  /** Another number resets the inputs. */
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(draft), PREVIEW_DELAY_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const preview = useOperation("overrideTool", { name: tool.name, override: asked }, { keep: true });
  const before = { override: { ...present.override }, save: true };
  const undo = useChange("overrideTool", {
    outdates: ["overrideTool", "listTools"],
    onSuccess: ({ effective }) => onRename(effective.name),
  });
  const save = useChange("overrideTool", {
    outdates: ["overrideTool", "listTools"],
    onSuccess: ({ effective }) => {
      toast(t(toolWords.nowGets, { name: effective.name }), () => undo.mutate({ ...before, name: effective.name }));
      if (effective.name !== tool.name) onRename(effective.name);
    },
  });
  const isChanged = JSON.stringify(draft) !== JSON.stringify(present.override);
  const isKnown = preview.data !== undefined && JSON.stringify(preview.data.override) === JSON.stringify(draft);
  return (
    <div className="flex flex-col gap-6">
      <form
        aria-label={t(toolWords.override)}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate({ name: tool.name, override: { ...draft }, save: true });
        }}
      >
        <Texts draft={draft} present={present} onChange={setDraft} />
        <Hints draft={draft} present={present} onChange={setDraft} />
        <Parameters draft={draft} present={present} onChange={setDraft} />
        <Field label={t(toolWords.leaveFields)} hint={t(toolWords.leaveFieldsHow)}>
          {(attributes) => (
            <TextArea
              {...attributes}
              key={round}
              mono
              rows={2}
              defaultValue={droppedText(draft)}
              onChange={(event) => setDraft(withDropped(draft, event.target.value))}
            />
          )}
        </Field>
        <Checkbox
          label={t(toolWords.hideIt)}
          checked={draft["hidden"] === true}
          onChange={(event) => setDraft(withOwn(draft, "hidden", event.target.checked || undefined))}
        />
        <div className="flex flex-wrap items-center gap-2">
          <Button
            type="submit"
            variant="primary"
            busy={save.isPending}
            disabled={!isChanged || preview.data?.misfit !== undefined}
          >
            {t(toolWords.save)}
          </Button>
          <Button
            disabled={Object.keys(draft).length === 0}
            onClick={() => {
              setDraft({});
              setRound(round + 1);
            }}
          >
            {t(toolWords.asServer)}
          </Button>
          <span className="text-sm text-soft">
            <RichText
              message={toolWords.writtenTo}
              values={{ where: <span className="font-mono break-all">{present.where}</span> }}
            />
          </span>
        </div>
        {save.error !== null && <FailureBox error={save.error} />}
      </form>
      <section aria-label={t(toolWords.preview)} aria-busy={!isKnown} className="flex flex-col gap-2">
        <h3 className="font-semibold">{t(toolWords.modelSees)}</h3>
        {preview.error !== null && <FailureBox error={preview.error} />}
        {preview.data !== undefined && preview.error === null && <Preview found={preview.data} />}
      </section>
    </div>
  );
}

function Preview({ found }: { readonly found: Overridden }) {
  const { original, effective, misfit, override } = found;
  if (override["hidden"] === true) return <p className="text-soft">{t(toolWords.hidden)}</p>;
  const { description, inputSchema } = effective.definition;
  return (
    <>
      {misfit !== undefined && (
        <p role="alert" className="rounded-md bg-bad-wash px-3 py-2 text-bad">
          {t(toolWords.misfit, { misfit })}
        </p>
      )}
      <p>{t(toolWords.costs, { cost: costText(original.tokens, effective.tokens) })}</p>
      <Code
        text={JSON.stringify({ name: effective.name, description, input_schema: inputSchema }, undefined, 2)}
        label={t(toolWords.modelDefinition)}
        className="max-h-[60dvh]"
      />
      <details>
        <summary className="cursor-pointer text-accent">{t(toolWords.serverDefinition)}</summary>
        <Code
          text={JSON.stringify(original.definition, undefined, 2)}
          label={t(toolWords.serverDefinition)}
          className="mt-2 max-h-[60dvh]"
        />
      </details>
    </>
  );
}

interface PartProps {
  readonly draft: OverrideDraft;
  readonly present: Overridden;
  readonly onChange: (draft: OverrideDraft) => void;
}

function Texts({ draft, present, onChange }: PartProps) {
  const { definition } = present.original;
  const own = (key: string): string | undefined => (typeof definition[key] === "string" ? definition[key] : undefined);
  const shown = (key: string): string => (typeof draft[key] === "string" ? draft[key] : "");
  return (
    <>
      <Field label={t(toolWords.name)} hint={t(toolWords.nameHow, { name: present.tool })}>
        {(attributes) => (
          <TextInput
            {...attributes}
            mono
            value={shown("name")}
            placeholder={present.tool}
            onChange={(event) => onChange(withOwn(draft, "name", event.target.value, present.tool))}
          />
        )}
      </Field>
      <Field label={t(toolWords.titleField)}>
        {(attributes) => (
          <TextInput
            {...attributes}
            value={shown("title")}
            placeholder={own("title") ?? ""}
            onChange={(event) => onChange(withOwn(draft, "title", event.target.value, own("title")))}
          />
        )}
      </Field>
      <Field label={t(toolWords.description)}>
        {(attributes) => (
          <TextArea
            {...attributes}
            rows={4}
            value={shown("description")}
            placeholder={own("description") ?? ""}
            onChange={(event) => onChange(withOwn(draft, "description", event.target.value, own("description")))}
          />
        )}
      </Field>
    </>
  );
}

const HINTS: readonly (readonly [key: string, label: Message])[] = [
  ["readOnlyHint", toolWords.onlyReads],
  ["destructiveHint", toolWords.canDestroy],
  ["idempotentHint", toolWords.secondCall],
  ["openWorldHint", toolWords.reachesOutside],
];

function Hints({ draft, present, onChange }: PartProps) {
  const given = present.original.definition["annotations"];
  const known = objectIn({ given }, "given");
  const chosen = objectIn(draft, "annotations");
  return (
    <fieldset className="flex flex-wrap gap-x-6 gap-y-3 rounded-md border border-line p-3">
      <legend className="px-1 font-medium">{t(toolWords.effects)}</legend>
      {HINTS.map(([key, label]) => (
        <Field key={key} label={t(label)}>
          {(attributes) => (
            <Select
              {...attributes}
              value={chosen[key] === undefined ? "" : String(chosen[key] === true)}
              options={[
                [
                  "",
                  t(
                    known[key] === undefined
                      ? toolWords.serverSilent
                      : known[key] === true
                        ? toolWords.serverYes
                        : toolWords.serverNo,
                  ),
                ],
                ["true", t(toolWords.yes)],
                ["false", t(toolWords.no)],
              ]}
              onChange={(value) =>
                onChange(withInner(draft, "annotations", key, value === "" ? undefined : value === "true"))
              }
            />
          )}
        </Field>
      ))}
    </fieldset>
  );
}

const MODES: readonly (readonly [ParameterMode, Message])[] = [
  ["free", toolWords.modeFree],
  ["default", toolWords.modeDefault],
  ["fixed", toolWords.modeFixed],
];

function Parameters({ draft, present, onChange }: PartProps) {
  const schema = objectIn(present.original.definition, "inputSchema");
  const entries = Object.entries(propertiesOf(merged(schema, schema)));
  if (entries.length === 0) return null;
  return (
    <fieldset className="flex min-w-0 flex-col gap-4 rounded-md border border-line p-3">
      <legend className="px-1 font-medium">{t(toolWords.parameters)}</legend>
      {entries.map(([name, property]) => (
        <Parameter
          key={name}
          name={name}
          known={textOf(merged(property, schema), "description") ?? ""}
          value={objectIn(objectIn(draft, "parameters"), name)}
          onChange={(value) => onChange(withInner(draft, "parameters", name, value))}
        />
      ))}
    </fieldset>
  );
}

interface ParameterProps {
  readonly name: string;
  /** The server's own description. */
  readonly known: string;
  readonly value: OverrideDraft;
  readonly onChange: (value: OverrideDraft | undefined) => void;
}

function Parameter({ name, known, value, onChange }: ParameterProps) {
  const mode = modeOf(value);
  const key = mode === "fixed" ? "fixed" : "default";
  const take = (next: OverrideDraft | undefined): void =>
    onChange(next === undefined || Object.keys(next).length === 0 ? undefined : next);
  return (
    <div className="flex flex-wrap items-end gap-3">
      <Field label={name}>
        {(attributes) => (
          <Select
            {...attributes}
            value={mode}
            options={MODES.map(([each, word]) => [each, t(word)] as const)}
            onChange={(next) => take(withMode(value, MODES.find(([each]) => each === next)?.[0] ?? "free"))}
          />
        )}
      </Field>
      {mode !== "free" && (
        <Field label={t(toolWords.valueOf, { name })} quiet className="min-w-40 flex-1">
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              placeholder={t(toolWords.textOrJson)}
              defaultValue={shownValue(value[key])}
              onChange={(event) => take({ ...value, [key]: typedValue(event.target.value) })}
            />
          )}
        </Field>
      )}
      {mode !== "fixed" && (
        <Field label={t(toolWords.descriptionOf, { name })} quiet className="min-w-40 flex-1">
          {(attributes) => (
            <TextInput
              {...attributes}
              value={typeof value["description"] === "string" ? value["description"] : ""}
              placeholder={known === "" ? t(toolWords.descriptionWord) : known}
              onChange={(event) => take(withOwn(value, "description", event.target.value, known))}
            />
          )}
        </Field>
      )}
    </div>
  );
}

function droppedText(draft: OverrideDraft): string {
  const { drop } = objectIn(draft, "output");
  return Array.isArray(drop) ? drop.join("\n") : "";
}
