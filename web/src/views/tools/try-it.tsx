/** A form for a tool's arguments, its run, and its result. */
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Field, TextArea } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox } from "../../components/states.tsx";
import { failureOf } from "../../failure.ts";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useOperation } from "../../state/queries.ts";
import { millisecondsText } from "../../text.ts";
import { NeededVisit } from "../logins/login-button.tsx";
import { FormPart, FormShared } from "./form-part.tsx";
import { problemsOf, startValue } from "./form-value.ts";
import { ResultView } from "./result-view.tsx";
import { type ToolRun, useToolRun } from "./run-tool.ts";
import { isObject, propertiesOf, merged } from "./schema.ts";

export function TryIt({ tool }: { readonly tool: ToolInfo }) {
  const root = tool.inputSchema ?? {};
  const [value, setValue] = useState<unknown>(() => startValue({ type: "object", ...root }, root) ?? {});
  const [json, setJson] = useState<string>();
  const [tried, setTried] = useState(false);
  const [broken, setBroken] = useState<ReadonlySet<string>>(new Set());
  const { run, start, again, stop } = useToolRun(tool.name);
  const problems = new Map(
    problemsOf({ type: "object", ...root }, value, root).map(({ path, message }) => [path, message]),
  );
  for (const path of broken) problems.set(path, t(toolWords.notJson));
  const jsonProblem = json === undefined ? undefined : jsonProblemOf(json);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    setTried(true);
    if (json !== undefined && jsonProblem === undefined) void start(JSON.parse(json));
    else if (json === undefined && problems.size === 0 && isObject(value)) void start(value);
    else {
      const form = event.currentTarget;
      // The marks are there only after the next drawing.
      requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
    }
  };
  const toggle = (): void => {
    setTried(false);
    setBroken(new Set());
    if (json === undefined) setJson(JSON.stringify(value, undefined, 2));
    else {
      if (jsonProblem === undefined) setValue(JSON.parse(json));
      setJson(undefined);
    }
  };
  const hasFields = Object.keys(propertiesOf(merged(root, root))).length > 0;
  return (
    <div className="flex flex-col gap-4 p-4">
      <form className="flex flex-col gap-4" noValidate onSubmit={submit}>
        {json === undefined ? (
          <FormShared
            value={{
              root,
              problems: tried ? problems : new Map([...broken].map((path) => [path, t(toolWords.notJson)])),
              setBroken: (path, is) =>
                setBroken((old) => (is ? new Set([...old, path]) : new Set([...old].filter((each) => each !== path)))),
            }}
          >
            {hasFields ? (
              <FormPart
                label={t(toolWords.arguments)}
                path=""
                schema={{ type: "object", ...root }}
                value={value}
                required
                depth={0}
                onChange={setValue}
              />
            ) : (
              <p className="text-soft">{t(toolWords.noArguments)}</p>
            )}
          </FormShared>
        ) : (
          <Field label={t(toolWords.argumentsJson)} error={jsonProblem}>
            {(attributes) => (
              <TextArea {...attributes} mono rows={10} value={json} onChange={(event) => setJson(event.target.value)} />
            )}
          </Field>
        )}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" variant="primary" icon="play" disabled={run.state === "running"}>
            {t(toolWords.run)}
          </Button>
          {run.state === "running" && (
            <Button icon="stop" disabled={run.cancelling} onClick={stop}>
              {t(components.cancel)}
            </Button>
          )}
          <Button variant="ghost" onClick={toggle} disabled={json !== undefined && jsonProblem !== undefined}>
            {t(json === undefined ? toolWords.writeJson : toolWords.useForm)}
          </Button>
          {tried && json === undefined && problems.size > 0 && (
            <span role="alert" className="text-sm text-bad">
              {t(toolWords.wrongValues, { count: problems.size })}
            </span>
          )}
        </div>
      </form>
      <div aria-live="polite">
        <RunState run={run} toolName={tool.name} onAgain={() => void again()} />
      </div>
    </div>
  );
}

interface RunStateProps {
  readonly run: ToolRun;
  readonly toolName: string;
  readonly onAgain: () => void;
}

function RunState({ run, toolName, onAgain }: RunStateProps) {
  switch (run.state) {
    case "none":
      return null;
    case "running":
      return (
        <>
          <ProgressBar progress={run.progress} />
          <WaitsForYes toolName={toolName} />
        </>
      );
    case "failed":
      return failureOf(run.error).details?.["pendingApproval"] === true ? (
        <OnHold message={failureOf(run.error).message} onAgain={onAgain} />
      ) : (
        <>
          <FailureBox error={run.error} />
          <NeededVisit error={run.error} />
        </>
      );
    case "done":
      return (
        <div className="flex flex-col gap-2">
          <p className="flex items-center gap-2 text-sm text-soft">
            <Icon
              name={run.result.isError === true ? "warning" : "check"}
              className={`size-4 ${run.result.isError === true ? "text-bad" : "text-ok"}`}
            />
            {t(run.result.isError === true ? toolWords.toolError : toolWords.done, {
              time: millisecondsText(run.milliseconds),
            })}
          </p>
          <ResultView result={run.result} />
        </div>
      );
  }
}

function ProgressBar({
  progress,
}: {
  readonly progress: { progress: number; total?: number; message?: string } | undefined;
}) {
  const share =
    progress?.total === undefined || progress.total === 0 ? undefined : Math.min(1, progress.progress / progress.total);
  return (
    <div className="flex flex-col gap-1">
      <div
        role="progressbar"
        aria-label={t(toolWords.progress)}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(share === undefined ? {} : { "aria-valuenow": Math.round(share * 100) })}
        className="h-2 overflow-hidden rounded-full bg-hover"
      >
        <div
          className={`h-full rounded-full bg-accent transition-[width] ${share === undefined ? "w-1/3 animate-pulse" : ""}`}
          style={share === undefined ? undefined : { width: `${share * 100}%` }}
        />
      </div>
      <p className="text-sm break-words text-soft">
        {progress?.message ?? t(toolWords.running)}
        {share !== undefined && ` ${Math.round(share * 100)}%`}
      </p>
    </div>
  );
}

/** A rule may hold the call until an operator answers, which may be whoever pressed Run. */
function WaitsForYes({ toolName }: { readonly toolName: string }) {
  const pending = useOperation("listApprovals", { status: "pending", limit: 100 });
  if (pending.data?.approvals.some((approval) => approval.name === toolName) !== true) return null;
  return (
    <p className="mt-2 rounded-md bg-warn-wash px-3 py-2 text-warn">
      {t(toolWords.waitsForApproval)}{" "}
      <Link to="/approvals" className="font-medium underline" target="_blank">
        {t(toolWords.seeApprovals)}
      </Link>
    </p>
  );
}

/** Nothing was run. The approvals open beside it: the arguments stay here for the next run. */
function OnHold({ message, onAgain }: { readonly message: string; readonly onAgain: () => void }) {
  return (
    <div role="alert" className="flex flex-wrap items-center gap-3 rounded-md border border-warn bg-warn-wash p-3">
      <Icon name="warning" className="size-4 text-warn" />
      <p className="min-w-0 flex-1 break-words text-ink">
        <RichText
          message={toolWords.onHold}
          values={{
            message,
            link: (
              <Link to="/approvals" className="font-medium whitespace-nowrap text-accent underline" target="_blank">
                {t(toolWords.answerInApprovals)}
              </Link>
            ),
          }}
        />
      </p>
      <Button size="sm" icon="refresh" onClick={onAgain}>
        {t(toolWords.runAgain)}
      </Button>
    </div>
  );
}

function jsonProblemOf(given: string): string | undefined {
  try {
    return isObject(JSON.parse(given)) ? undefined : t(toolWords.mustBeObject);
  } catch (error) {
    return error instanceof Error ? error.message : t(toolWords.notJson);
  }
}
