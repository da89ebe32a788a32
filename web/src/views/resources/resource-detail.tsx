/** One resource or template: what it is, reading it, and following its changes. */
import { type FormEvent, useEffect, useState } from "react";
import type { ResourceInfo } from "../../../../src/contract/catalog-schemas.ts";
import { run as runOnce, runLive } from "../../api.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, Spinner } from "../../components/button.tsx";
import { Field, Switch } from "../../components/fields.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { SuggestInput } from "../../components/suggest-input.tsx";
import { Time } from "../../components/time.tsx";
import { toastError } from "../../components/toast.tsx";
import { t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { useConnectionStatus, useHubEvent } from "../../state/live.ts";
import { useLiveRun } from "../../state/live-run.ts";
import { useOperation } from "../../state/queries.ts";
import { NeededVisit } from "../logins/login-button.tsx";
import { DetailHead, Gone } from "./catalog-page.tsx";
import { ContentPreview, GuardMark } from "./content-preview.tsx";
import { resourcePreview } from "./preview.ts";

interface ResourceDetailProps {
  readonly uri: string;
  readonly onClose: () => void;
}

export function ResourceDetail({ uri, onClose }: ResourceDetailProps) {
  const query = useOperation("listResources", { uri, limit: 1 });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(resources.loading)} />}>
      {({ resources: [resource] }) =>
        // A link of a result may lead to a resource that is not listed.
        resource === undefined && !uri.includes("{") ? (
          <Unlisted uri={uri} onClose={onClose} />
        ) : resource === undefined ? (
          <Gone onClose={onClose} />
        ) : (
          <Known resource={resource} onClose={onClose} />
        )
      }
    </Loaded>
  );
}

function Known({ resource, onClose }: { readonly resource: ResourceInfo; readonly onClose: () => void }) {
  const { uri, name, title, description, mimeType, template, serverId } = resource;
  return (
    <>
      <DetailHead
        name={uri}
        title={title ?? name}
        serverId={serverId}
        onClose={onClose}
        badges={
          <>
            {template && <Badge>{t(resources.template)}</Badge>}
            {mimeType !== undefined && <Badge>{mimeType}</Badge>}
          </>
        }
      />
      <div className="flex min-w-0 flex-col gap-4 p-4">
        {description !== undefined && <Markdown text={description} />}
        {template ? <Template resource={resource} /> : <Reading uri={uri} followable={resource.followable === true} />}
      </div>
    </>
  );
}

function Unlisted({ uri, onClose }: ResourceDetailProps) {
  return (
    <div className="flex min-w-0 flex-col gap-4 p-4">
      <div className="flex items-start gap-2">
        <h2 className="min-w-0 flex-1 font-mono text-lg font-semibold break-all">{uri}</h2>
        <Button size="sm" onClick={onClose}>
          {t(resources.back)}
        </Button>
      </div>
      <Reading uri={uri} followable={false} />
    </div>
  );
}

function Template({ resource }: { readonly resource: ResourceInfo }) {
  const { uri, variables: names = [] } = resource;
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [given, setGiven] = useState<Readonly<Record<string, string>>>();
  const filled = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setGiven(filled);
  };
  return (
    <>
      <form className="flex flex-col gap-3" onSubmit={submit}>
        {names.map((name) => (
          <Field key={name} label={name}>
            {(attributes) => (
              <SuggestInput
                attributes={attributes}
                value={values[name] ?? ""}
                listLabel={t(resources.suggestions, { name })}
                onChange={(value) => setValues({ ...values, [name]: value })}
                suggest={async (value, signal) => {
                  const { [name]: _own, ...known } = filled;
                  const input = { uri, argument: name, value, known };
                  return (await runOnce("completeArgument", input, { signal })).values;
                }}
              />
            )}
          </Field>
        ))}
        <div>
          <Button type="submit" variant="primary" icon="play">
            {t(resources.read)}
          </Button>
        </div>
      </form>
      {given !== undefined && (
        <Reading key={JSON.stringify(given)} uri={uri} variables={given} followable={resource.followable === true} />
      )}
    </>
  );
}

interface ReadingProps {
  readonly uri: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly followable: boolean;
}

function Reading({ uri, variables, followable }: ReadingProps) {
  const { run, start, stop } = useLiveRun("readResource");
  const read = (): void => void start({ uri, ...(variables === undefined ? {} : { variables }), questions: true });
  useEffect(read, []);
  const output = run.state === "done" ? run.output : run.state === "running" ? run.before : undefined;
  const address = variables === undefined ? uri : output?.contents[0]?.uri;
  return (
    <section aria-label={t(resources.content)} className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        {run.state === "running" ? (
          <>
            <span role="status" className="flex items-center gap-2 text-soft">
              <Spinner /> {t(resources.running)}
            </span>
            <Button size="sm" icon="stop" onClick={stop}>
              {t(resources.cancel)}
            </Button>
          </>
        ) : (
          <Button size="sm" icon="refresh" onClick={read}>
            {t(run.state === "done" ? resources.readAgain : resources.read)}
          </Button>
        )}
        {followable && address !== undefined && <Follow uri={address} onUpdate={read} />}
      </div>
      {run.state === "failed" && (
        <>
          <FailureBox error={run.error} />
          <NeededVisit error={run.error} />
        </>
      )}
      {output !== undefined && (
        <>
          <GuardMark result={output} />
          {output.contents.length === 0 && <p className="text-soft">{t(resources.empty)}</p>}
          {output.contents.map((content, index) => (
            <div key={index} className="flex min-w-0 flex-col gap-1.5">
              {(content.uri !== uri || output.contents.length > 1) && (
                <p className="font-mono text-sm break-all text-soft">{content.uri}</p>
              )}
              <ContentPreview previewed={resourcePreview(content)} />
            </div>
          ))}
        </>
      )}
    </section>
  );
}

function Follow({ uri, onUpdate }: { readonly uri: string; readonly onUpdate: () => void }) {
  const [on, setOn] = useState(false);
  const [updates, setUpdates] = useState<{ readonly count: number; readonly at: string }>();
  const isOpen = useConnectionStatus() === "open";
  useEffect(() => {
    // A subscription belongs to the connection: another connection needs its own.
    if (!on || !isOpen) return undefined;
    let isOver = false;
    runLive("followResource", { uri }).catch((error: unknown) => {
      if (isOver) return;
      setOn(false);
      toastError(error);
    });
    return () => {
      isOver = true;
      void runLive("unfollowResource", { uri }).catch(() => {});
    };
  }, [on, isOpen, uri]);
  useHubEvent(["resource.updated"], (event) => {
    if (!on || event.uri !== uri) return;
    setUpdates((old) => ({ count: (old?.count ?? 0) + 1, at: new Date().toISOString() }));
    onUpdate();
  });
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <Switch label={t(resources.follow)} checked={on} onChange={setOn} />
      <span role="status" className="text-sm text-soft">
        {on && updates === undefined && t(resources.following)}
        {on && updates !== undefined && (
          <RichText message={resources.updates} values={{ count: updates.count, when: <Time at={updates.at} /> }} />
        )}
      </span>
    </div>
  );
}
