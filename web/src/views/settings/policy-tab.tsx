/** Why a tool may be used or not, and by whom. */
import { type FormEvent, useEffect, useId, useState } from "react";
import type { Explanation } from "../../../../src/contract/settings-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Field, Select, TextInput } from "../../components/fields.tsx";
import { KeyValues } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, FailureBox, Skeleton } from "../../components/states.tsx";
import { firstSteps } from "../../messages/first-steps.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { settings } from "../../messages/settings.ts";
import { useOperation } from "../../state/queries.ts";

const TOOL_EXAMPLE = "files__read_text_file";
const ARGUMENTS_EXAMPLE = '{"branch":"main"}';

interface PolicyTabProps {
  readonly name: string | undefined;
  readonly role: string | undefined;
  readonly roles: readonly string[];
  readonly onChange: (next: { name?: string | undefined; role?: string | undefined }) => void;
}

export function PolicyTab({ name, role, roles, onChange }: PolicyTabProps) {
  const [text, setText] = useState(name ?? "");
  useEffect(() => setText(name ?? ""), [name]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChange({ name: text.trim() === "" ? undefined : text.trim() });
  };
  const options = [["", t(settings.withoutRole)] as const, ...roleOptions(roles, role)];
  return (
    <div className="flex flex-col gap-4 p-4">
      <div>
        <h2 className="font-semibold">{t(settings.mayBeUsed)}</h2>
        <p className="text-soft">{t(settings.mayBeUsedHow)}</p>
      </div>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-3">
        <NameField
          text={text}
          onText={setText}
          onPicked={(picked) => {
            setText(picked);
            onChange({ name: picked });
          }}
        />
        <Field label={t(rules.role)}>
          {(attributes) => (
            <Select
              {...attributes}
              value={role ?? ""}
              options={options}
              onChange={(value) => onChange({ role: value === "" ? undefined : value })}
            />
          )}
        </Field>
        <Button type="submit" variant="primary" disabled={text.trim() === ""}>
          {t(settings.explain)}
        </Button>
      </form>
      {name === undefined ? (
        <Empty title={t(settings.notAsked)} icon="approvals">
          <RichText message={settings.notAskedHow} />
        </Empty>
      ) : (
        <Answer key={name} name={name} role={role} />
      )}
    </div>
  );
}

function roleOptions(roles: readonly string[], asked: string | undefined): readonly (readonly [string, string])[] {
  const all = asked === undefined || roles.includes(asked) ? roles : [...roles, asked];
  return all.map((role) => [role, role] as const);
}

interface NameFieldProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly onPicked: (name: string) => void;
}

function NameField({ text, onText, onPicked }: NameFieldProps) {
  const list = useId();
  const query = useOperation(
    "listTools",
    { limit: 20, fields: "summary", ...(text.trim() === "" ? {} : { q: text.trim().slice(0, 200) }) },
    { keep: true },
  );
  const names = query.data?.tools.map((tool) => tool.name) ?? [];
  return (
    <Field label={t(rules.tokenName)} className="min-w-0 flex-1 basis-64">
      {(attributes) => (
        <>
          <TextInput
            {...attributes}
            mono
            list={list}
            value={text}
            placeholder={TOOL_EXAMPLE}
            onChange={(event) => {
              onText(event.target.value);
              // A browser tells typing and picking apart by this alone.
              const kind = "inputType" in event.nativeEvent ? event.nativeEvent.inputType : undefined;
              const isPicked = kind === undefined || kind === "insertReplacementText";
              if (isPicked && names.includes(event.target.value)) onPicked(event.target.value);
            }}
          />
          <datalist id={list}>
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

const VERDICTS = {
  allow: { word: settings.allowed, tone: "ok" },
  ask: { word: settings.needsApproval, tone: "warn" },
  deny: { word: settings.denied, tone: "bad" },
} as const;

function Answer({ name, role }: { readonly name: string; readonly role: string | undefined }) {
  const [text, setText] = useState("");
  const [args, setArgs] = useState<Readonly<Record<string, unknown>>>();
  const query = useOperation("explainPolicy", { name, role }, { enabled: args === undefined });
  const call = useOperation("explainCall", { name, role, arguments: args ?? {} }, { enabled: args !== undefined });
  const parsed = text.trim() === "" ? undefined : parseArguments(text);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setArgs(parsed);
  };
  return (
    <>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-3">
        <Field
          label={t(settings.argumentsJson)}
          className="min-w-0 flex-1 basis-64"
          error={text.trim() !== "" && parsed === undefined ? t(firstSteps.notJson) : undefined}
        >
          {(attributes) => (
            <TextInput
              {...attributes}
              mono
              value={text}
              placeholder={ARGUMENTS_EXAMPLE}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" disabled={text.trim() !== "" && parsed === undefined}>
          {t(settings.explainWith)}
        </Button>
      </form>
      <Shown query={args === undefined ? query : call} role={role} />
    </>
  );
}

function parseArguments(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

interface ShownProps {
  readonly query: ReturnType<typeof useOperation<"explainPolicy">>;
  readonly role: string | undefined;
}

function Shown({ query, role }: ShownProps) {
  if (query.error !== null) return <FailureBox error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return <Skeleton lines={3} label={t(settings.checkingRules)} />;
  return <Verdict explanation={query.data} role={role} />;
}

function Verdict({ explanation, role }: { readonly explanation: Explanation; readonly role: string | undefined }) {
  const { word, tone } = VERDICTS[explanation.verdict];
  const [deciding, ...others] = explanation.reasons;
  return (
    <div role="status" className="flex flex-col gap-3 rounded-md border border-line bg-sunken p-4">
      <div className="flex flex-wrap items-center gap-2">
        <Badge tone={tone}>{t(word)}</Badge>
        <span className="font-mono text-sm break-all">{explanation.name}</span>
        <span className="text-soft">{role === undefined ? t(settings.forNoRole) : t(settings.forRole, { role })}</span>
        <Badge tone={explanation.visible ? "neutral" : "warn"}>
          {t(explanation.visible ? settings.visible : settings.notVisible)}
        </Badge>
      </div>
      {deciding !== undefined && <p className="font-medium break-words">{deciding}</p>}
      {others.length > 0 && (
        <ul className="list-disc pl-6 text-soft">
          {others.map((reason, index) => (
            <li key={index} className="break-words">
              {reason}
            </li>
          ))}
        </ul>
      )}
      {explanation.nearest !== null && <Nearest nearest={explanation.nearest} />}
      {explanation.rule !== null && (
        <KeyValues
          rows={Object.entries(explanation.rule)
            .map(([key, value]) => [key, Array.isArray(value) ? value.join(", ") : value] as const)
            .filter(([, value]) => typeof value === "string")
            .map(
              ([key, value]) => [key, <span className="font-mono text-sm break-all">{String(value)}</span>] as const,
            )}
        />
      )}
    </div>
  );
}

function Nearest({ nearest }: { readonly nearest: NonNullable<Explanation["nearest"]> }) {
  const { list, pattern, level } = nearest.rule;
  return (
    <p className="break-words text-soft">
      <RichText
        message={nearest.unmet.length === 0 ? settings.nearestOverruled : settings.nearestUnmet}
        values={{
          verdict: t(VERDICTS[nearest.verdict].word),
          rule: (
            <code className="font-mono">
              {String(list)}: {String(pattern)}
            </code>
          ),
          level: String(level),
          unmet: nearest.unmet.join(", "),
        }}
      />
    </p>
  );
}
