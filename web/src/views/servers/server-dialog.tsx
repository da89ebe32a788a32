/** Adding a server, from something pasted or by hand, and editing one. */
import { useState } from "react";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { run } from "../../api.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { queryClient, useChange } from "../../state/queries.ts";
import { configOf, type Draft, draftOf, draftProblems, EMPTY_DRAFT, maskProblem, updatesOf } from "./draft.ts";
import { PasteStep } from "./paste-step.tsx";
import { ServerForm } from "./server-form.tsx";
import { TestResult } from "./test-result.tsx";

export type ParsedServer = OutputOf<"parseServers">["servers"][number];

interface AddServerProps {
  readonly onClose: () => void;
  readonly onAdded: (serverId: string) => void;
}

export function AddServer({ onClose, onAdded }: AddServerProps) {
  const [draft, setDraft] = useState<Draft>();
  // A snippet may hold several servers; they are saved one after the other.
  const [waiting, setWaiting] = useState<readonly ParsedServer[]>([]);
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const take = (parsed: readonly ParsedServer[]): void => {
    const [first, ...rest] = parsed;
    setDraft(first === undefined ? EMPTY_DRAFT : draftOf(first.serverId, first.config));
    setWarnings(first?.warnings ?? []);
    setWaiting(rest);
  };
  const add = useChange("addServer", {
    outdates: ["listServers", "overview"],
    onSuccess: ({ server }) => {
      toast(t(serverWords.added, { server: server.name }));
      if (waiting.length > 0) take(waiting);
      else onAdded(server.id);
    },
  });
  if (draft === undefined)
    return (
      <Dialog open onOpenChange={onClose} title={t(serverWords.add)} description={t(serverWords.pasteHow)}>
        <PasteStep onRead={take} />
      </Dialog>
    );
  return (
    <ServerDialog
      key={`${draft.id} ${waiting.length}`}
      title={waiting.length === 0 ? t(serverWords.add) : t(serverWords.addMore, { count: waiting.length })}
      start={draft}
      fixedId={false}
      warnings={warnings}
      saving={add.isPending}
      error={add.error}
      saveLabel={t(waiting.length === 0 ? serverWords.save : serverWords.saveAndContinue)}
      onClose={onClose}
      {...(waiting.length === 0 ? {} : { onSkip: () => take(waiting) })}
      onBack={() => setDraft(undefined)}
      onSave={(next) => add.mutate({ serverId: next.id, config: configOf(next) })}
    />
  );
}

interface EditServerProps {
  readonly server: ServerDetail;
  readonly onClose: () => void;
}

export function EditServer({ server, onClose }: EditServerProps) {
  // What the form was filled from: a newer entry of the hub must not be overwritten unseen.
  const [base, setBase] = useState(server);
  const [hidden, setHidden] = useState<string>();
  const update = useChange("updateServer", {
    outdates: ["listServers", "getServer"],
    onSuccess: ({ server: saved }) => {
      // Edit may be opened again before the refetch answers; it must not show the entry of before.
      queryClient.setQueryData(["getServer", { serverId: saved.id }], { server: saved });
      toast(t(serverWords.saved, { server: saved.name }));
      onClose();
    },
  });
  const save = (next: Draft, etag: string | undefined): void => {
    const updates = updatesOf(base.config, configOf(next));
    const hidden = maskProblem(base.config, configOf(next));
    setHidden(hidden);
    if (hidden !== undefined) return;
    if (Object.keys(updates).length === 0) onClose();
    else update.mutate({ serverId: base.id, updates, ifMatch: etag });
  };
  const reload = async (): Promise<void> => {
    try {
      const { server: now } = await run("getServer", { serverId: base.id });
      update.reset();
      setBase(now);
    } catch (error) {
      toastError(error);
    }
  };
  const conflict = update.error !== null && failureOf(update.error).code === "conflict";
  return (
    <ServerDialog
      key={base.etag}
      title={t(serverWords.edit, { server: server.name })}
      start={draftOf(base.id, base.config)}
      fixedId
      warnings={[]}
      saving={update.isPending}
      error={hidden === undefined ? update.error : { code: "invalid_arguments", message: hidden }}
      saveLabel={t(serverWords.save)}
      onClose={onClose}
      onSave={(next) => save(next, base.etag)}
      {...(conflict
        ? {
            onReload: () => void reload(),
            onOverwrite: (next: Draft) => save(next, undefined),
          }
        : {})}
    />
  );
}

interface ServerDialogProps {
  readonly title: string;
  readonly start: Draft;
  readonly fixedId: boolean;
  readonly warnings: readonly string[];
  readonly saving: boolean;
  readonly error: unknown;
  readonly saveLabel: string;
  readonly onClose: () => void;
  readonly onSave: (draft: Draft) => void;
  readonly onBack?: () => void;
  readonly onSkip?: () => void;
  /** After a conflict: fill the form from what the hub has now, or save all the same. */
  readonly onReload?: () => void;
  readonly onOverwrite?: (draft: Draft) => void;
}

export function ServerDialog(props: ServerDialogProps) {
  const { title, start, fixedId, warnings, saving, error, saveLabel, onClose, onSave, onBack, onSkip } = props;
  const [draft, setDraft] = useState(start);
  const [tried, setTried] = useState(false);
  const test = useChange("testServer");
  const problems = draftProblems(draft);
  const whenWhole = (action: () => void): void => {
    setTried(true);
    if (Object.keys(problems).length === 0) action();
  };
  const change = (next: Draft): void => {
    setDraft(next);
    test.reset();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={title}
      footer={
        <>
          {onBack !== undefined && (
            <Button variant="ghost" className="mr-auto" onClick={onBack}>
              {t(serverWords.goBack)}
            </Button>
          )}
          {onSkip !== undefined && <Button onClick={onSkip}>{t(serverWords.skip)}</Button>}
          <Button
            icon="plug"
            busy={test.isPending}
            onClick={() => whenWhole(() => test.mutate({ serverId: draft.id, config: configOf(draft) }))}
          >
            {t(serverWords.test)}
          </Button>
          <Button variant="primary" busy={saving} onClick={() => whenWhole(() => onSave(draft))}>
            {saveLabel}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {warnings.map((warning) => (
          <p key={warning} className="rounded-md bg-warn-wash px-3 py-2 text-warn">
            {warning}
          </p>
        ))}
        <ServerForm draft={draft} problems={tried ? problems : {}} fixedId={fixedId} onChange={change} />
        {test.isPending && <p role="status">{t(serverWords.testing)}</p>}
        {test.data !== undefined && (
          <div ref={show}>
            <TestResult result={test.data} />
          </div>
        )}
        {test.error !== null && <FailureBox error={test.error} />}
        {error !== null && (
          <div ref={show}>
            <SaveFailure error={error} />
          </div>
        )}
        {props.onOverwrite !== undefined && (
          <div className="flex flex-wrap gap-2">
            <Button size="sm" onClick={props.onReload}>
              {t(serverWords.loadCurrent)}
            </Button>
            <Button size="sm" variant="danger" onClick={() => props.onOverwrite?.(draft)}>
              {t(serverWords.saveMine)}
            </Button>
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** The form may be longer than the window: what came of a press is scrolled to. */
function show(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

/** Where the hub says which parts of the entry it refuses, they are named. */
function SaveFailure({ error }: { readonly error: unknown }) {
  const places = placesOf(failureOf(error).details);
  return (
    <div className="flex flex-col gap-2">
      <FailureBox error={error} />
      {places.length > 0 && (
        <p className="text-sm">
          <RichText
            message={serverWords.refused}
            values={{
              places: places.map((place) => (
                <code key={place} className="mr-2 font-mono text-bad">
                  {place}
                </code>
              )),
            }}
          />
        </p>
      )}
    </div>
  );
}

function placesOf(details: Readonly<Record<string, unknown>> | undefined): string[] {
  return Object.values(details ?? {})
    .filter((value) => Array.isArray(value))
    .flat()
    .map((each: unknown) => (typeof each === "object" && each !== null && "path" in each ? String(each.path) : each))
    .filter((each) => typeof each === "string");
}
