/** One question of a server in a call from this page. */
import { type FormEvent, useState } from "react";
import type { Question } from "../../../../src/contract/activity-schemas.ts";
import type { InputOf } from "../../../../src/contract/operations.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, TextArea } from "../../components/fields.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { safeLink } from "../../components/safe-link.ts";
import { t } from "../../messages/messages.ts";
import { questions } from "../../messages/questions.ts";
import { resources } from "../../messages/resources.ts";
import { ContentPreview } from "../resources/content-preview.tsx";
import { messagePreview } from "../resources/preview.ts";
import { FormPart, FormShared } from "../tools/form-part.tsx";
import { problemsOf, startValue } from "../tools/form-value.ts";
import { isObject } from "../tools/schema.ts";

export type Answer = Omit<InputOf<"answerQuestion">, "questionId">;

export function QuestionDialog({ question, onAnswer }: QuestionProps) {
  const parts = { question, onAnswer };
  switch (question.kind) {
    case "form":
      return <FormQuestion {...parts} />;
    case "url":
      return <UrlQuestion {...parts} />;
    case "sampling":
      return <SamplingQuestion {...parts} />;
  }
}

interface QuestionProps {
  readonly question: Question;
  readonly onAnswer: (answer: Answer) => void;
}

function Frame({
  question,
  title,
  children,
  onAnswer,
  action,
}: QuestionProps & { readonly title: string; readonly children: React.ReactNode; readonly action: React.ReactNode }) {
  return (
    <Dialog
      open
      onOpenChange={() => onAnswer({ action: "cancel" })}
      title={title}
      description={
        <RichText
          message={questions.during}
          values={{ name: <code className="font-mono break-all">{question.name}</code> }}
        />
      }
      footer={
        <>
          <Button onClick={() => onAnswer({ action: "decline" })}>{t(questions.decline)}</Button>
          {action}
        </>
      }
    >
      <div className="flex min-w-0 flex-col gap-4">{children}</div>
    </Dialog>
  );
}

function FormQuestion({ question, onAnswer }: QuestionProps) {
  const root = { type: "object", ...question.schema };
  const [value, setValue] = useState<unknown>(() => startValue(root, root) ?? {});
  const [tried, setTried] = useState(false);
  const problems = new Map(problemsOf(root, value, root).map(({ path, message }) => [path, message]));
  const form = `question-${question.id}`;
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    setTried(true);
    if (problems.size === 0 && isObject(value)) return onAnswer({ action: "accept", content: { ...value } });
    const element = event.currentTarget;
    // The marks are there only after the next drawing.
    requestAnimationFrame(() => element.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
    return undefined;
  };
  return (
    <Frame
      question={question}
      onAnswer={onAnswer}
      title={t(questions.asks, { server: question.server })}
      action={
        <Button type="submit" form={form} variant="primary">
          {t(questions.answer)}
        </Button>
      }
    >
      <p className="break-words whitespace-pre-wrap">{question.message}</p>
      <form id={form} noValidate onSubmit={submit} className="flex flex-col gap-4">
        <FormShared value={{ root, problems: tried ? problems : new Map(), setBroken: () => {} }}>
          {Object.keys(isObject(question.schema?.["properties"]) ? question.schema["properties"] : {}).length > 0 && (
            <FormPart
              label={t(questions.answer)}
              path=""
              schema={root}
              value={value}
              required
              depth={0}
              onChange={setValue}
            />
          )}
        </FormShared>
        {tried && problems.size > 0 && (
          <p role="alert" className="text-sm text-bad">
            {t(questions.wrong, { count: problems.size })}
          </p>
        )}
      </form>
      <p className="text-sm text-soft">{t(questions.fieldsAreSent)}</p>
    </Frame>
  );
}

function UrlQuestion({ question, onAnswer }: QuestionProps) {
  const link = safeLink(question.url ?? "");
  return (
    <Frame
      question={question}
      onAnswer={onAnswer}
      title={t(questions.asksToOpen, { server: question.server })}
      action={
        link !== undefined && (
          <a
            href={link.href}
            target="_blank"
            rel="noopener noreferrer"
            className="inline-flex min-h-9 items-center rounded-md bg-accent px-3 font-medium text-accent-ink hover:opacity-90"
            onClick={() => onAnswer({ action: "accept" })}
          >
            {t(questions.opens, { host: link.host })}
          </a>
        )
      }
    >
      <p className="break-words whitespace-pre-wrap">{question.message}</p>
      <div>
        <p className="text-sm text-soft">{t(questions.leads)}</p>
        {link !== undefined && <p className="text-lg font-semibold break-all">{link.host}</p>}
        <p className="font-mono text-sm break-all text-soft">{question.url}</p>
      </div>
      {link === undefined && <p className="text-bad">{t(questions.unsafe)}</p>}
      {link?.href.startsWith("http:") === true && <p className="text-warn">{t(questions.insecure)}</p>}
    </Frame>
  );
}

function SamplingQuestion({ question, onAnswer }: QuestionProps) {
  const [text, setText] = useState("");
  const { messages, systemPrompt, ...rest } = question.sampling ?? {};
  return (
    <Frame
      question={question}
      onAnswer={onAnswer}
      title={t(questions.asksModel, { server: question.server })}
      action={
        <Button variant="primary" disabled={text.trim() === ""} onClick={() => onAnswer({ action: "accept", text })}>
          {t(questions.send)}
        </Button>
      }
    >
      <p className="text-soft">{t(questions.samplingHow)}</p>
      {typeof systemPrompt === "string" && (
        <div>
          <h3 className="mb-1 text-sm font-medium text-soft">{t(questions.system)}</h3>
          <Markdown text={systemPrompt} />
        </div>
      )}
      {(Array.isArray(messages) ? messages : []).filter(isObject).map(({ role, content }, index) => (
        <div key={index} className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
          <div>
            <Badge tone={role === "user" ? "accent" : "neutral"}>
              {t(role === "user" ? resources.fromUser : resources.fromAssistant)}
            </Badge>
          </div>
          {(Array.isArray(content) ? content : [content]).filter(isObject).map((part, at) => (
            <ContentPreview key={at} previewed={messagePreview(part)} />
          ))}
        </div>
      ))}
      {Object.keys(rest).length > 0 && (
        <details>
          <summary className="cursor-pointer text-sm text-soft">{t(questions.limits)}</summary>
          <JsonTree value={rest} label={t(questions.limits)} />
        </details>
      )}
      <Field label={t(questions.yourAnswer)}>
        {(attributes) => (
          <TextArea {...attributes} rows={4} value={text} onChange={(event) => setText(event.target.value)} />
        )}
      </Field>
    </Frame>
  );
}
