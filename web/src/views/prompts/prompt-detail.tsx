/** One prompt: its arguments, running it, and the messages that it gives. */
import { type FormEvent, useState } from "react";
import type { PromptInfo } from "../../../../src/contract/catalog-schemas.ts";
import { run as runOnce } from "../../api.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, Spinner } from "../../components/button.tsx";
import { CopyButton } from "../../components/code.tsx";
import { Field } from "../../components/fields.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { SuggestInput } from "../../components/suggest-input.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { useLiveRun } from "../../state/live-run.ts";
import { useOperation } from "../../state/queries.ts";
import { NeededVisit } from "../logins/login-button.tsx";
import { DetailHead, Gone } from "../resources/catalog-page.tsx";
import { ContentPreview, GuardMark } from "../resources/content-preview.tsx";
import { messagePreview } from "../resources/preview.ts";
import { isObject } from "../tools/schema.ts";

interface PromptDetailProps {
  readonly name: string;
  readonly onClose: () => void;
}

export function PromptDetail({ name, onClose }: PromptDetailProps) {
  const query = useOperation("listPrompts", { name, limit: 1 });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(resources.loading)} />}>
      {({ prompts: [prompt] }) =>
        prompt === undefined ? <Gone onClose={onClose} /> : <Known prompt={prompt} onClose={onClose} />
      }
    </Loaded>
  );
}

interface Argument {
  readonly name: string;
  readonly description: string | undefined;
  readonly required: boolean;
}

function argumentsOf(prompt: PromptInfo): readonly Argument[] {
  return prompt.arguments.flatMap(({ name, description, required }) =>
    typeof name === "string"
      ? [
          {
            name,
            description: typeof description === "string" ? description : undefined,
            required: required === true,
          },
        ]
      : [],
  );
}

function Known({ prompt, onClose }: { readonly prompt: PromptInfo; readonly onClose: () => void }) {
  const { run, start, stop } = useLiveRun("getPrompt");
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [tried, setTried] = useState(false);
  const all = argumentsOf(prompt);
  const filled = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  const missing = all.filter(({ name, required }) => required && filled[name] === undefined);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    setTried(true);
    const form = event.currentTarget;
    if (missing.length === 0) {
      void start({ promptName: prompt.name, ...(all.length === 0 ? {} : { args: filled }), questions: true });
      // The marks are there only after the next drawing.
    } else requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  return (
    <>
      <DetailHead name={prompt.name} title={prompt.title} serverId={prompt.serverId} onClose={onClose} />
      <div className="flex min-w-0 flex-col gap-4 p-4">
        {prompt.description !== undefined && <Markdown text={prompt.description} />}
        <form className="flex flex-col gap-3" noValidate onSubmit={submit}>
          {all.length === 0 && <p className="text-soft">{t(resources.noArguments)}</p>}
          {all.map(({ name, description, required }) => (
            <Field
              key={name}
              label={name}
              required={required}
              error={tried && missing.some((each) => each.name === name) ? t(resources.required) : undefined}
              {...(description === undefined ? {} : { hint: description })}
            >
              {(attributes) => (
                <SuggestInput
                  attributes={attributes}
                  value={values[name] ?? ""}
                  listLabel={t(resources.suggestions, { name })}
                  onChange={(value) => setValues({ ...values, [name]: value })}
                  suggest={async (value, signal) => {
                    const { [name]: _own, ...known } = filled;
                    const input = { promptName: prompt.name, argument: name, value, known };
                    return (await runOnce("completeArgument", input, { signal })).values;
                  }}
                />
              )}
            </Field>
          ))}
          <div className="flex flex-wrap items-center gap-2">
            <Button type="submit" variant="primary" icon="play" disabled={run.state === "running"}>
              {t(resources.run)}
            </Button>
            {run.state === "running" && (
              <>
                <Button icon="stop" onClick={stop}>
                  {t(resources.cancel)}
                </Button>
                <span role="status" className="flex items-center gap-2 text-soft">
                  <Spinner /> {t(resources.running)}
                </span>
              </>
            )}
          </div>
        </form>
        {run.state === "failed" && (
          <>
            <FailureBox error={run.error} />
            <NeededVisit error={run.error} />
          </>
        )}
        {run.state === "done" && <Messages output={run.output} />}
      </div>
    </>
  );
}

interface MessagesProps {
  readonly output: { readonly messages: readonly Readonly<Record<string, unknown>>[] } & Readonly<
    Record<string, unknown>
  >;
}

function Messages({ output }: MessagesProps) {
  const { messages } = output;
  return (
    <section aria-label={t(resources.messages)} className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 className="font-semibold">{t(resources.messages)}</h3>
        <CopyButton text={JSON.stringify(messages, undefined, 2)} label={t(resources.copyMessages)} />
      </div>
      <GuardMark result={output} />
      {messages.length === 0 && <p className="text-soft">{t(resources.empty)}</p>}
      {messages.map(({ role, content }, index) => (
        <div key={index} className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
          <div>
            <Badge tone={role === "user" ? "accent" : "neutral"}>
              {t(role === "user" ? resources.fromUser : resources.fromAssistant)}
            </Badge>
          </div>
          {(Array.isArray(content) ? content : [content]).filter(isObject).map((part, at) => {
            const previewed = messagePreview(part);
            return (
              <div key={at} className="flex min-w-0 flex-col gap-1.5">
                {previewed.uri !== "" && <p className="font-mono text-sm break-all text-soft">{previewed.uri}</p>}
                <ContentPreview previewed={previewed} />
              </div>
            );
          })}
        </div>
      ))}
    </section>
  );
}
