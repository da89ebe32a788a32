/** Recording of arguments and results: whether it is on, and how it is switched. */
import { useState } from "react";
import type { RecordingState } from "../../../../src/contract/activity-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { FailureBox } from "../../components/states.tsx";
import { useNow } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { leftText } from "../../text.ts";

const SPANS = [15, 60, 480] as const;
/** Not an id of a server. */
const ALL = "*";

function spanWord(minutes: number): string {
  return minutes < 60 ? t(traffic.minutes, { count: minutes }) : t(traffic.hours, { count: minutes / 60 });
}

/** A button that says whether something is recorded, and opens what sets it. */
export function RecordingButton({ server }: { readonly server?: string | null | undefined }) {
  const [open, setOpen] = useState(false);
  const state = useOperation("getRecording", {}).data;
  const isOn = state !== undefined && state.recordings.length > 0;
  return (
    <>
      <Button onClick={() => setOpen(true)} disabled={state === undefined}>
        <span
          aria-hidden="true"
          className={`size-2.5 rounded-full ${isOn ? "bg-bad" : "border-2 border-line-strong"}`}
        />
        {isOn ? <Left state={state} /> : state?.arguments === true ? t(traffic.record) : t(traffic.off)}
      </Button>
      {state !== undefined && (
        <RecordingDialog key={String(open)} open={open} onOpenChange={setOpen} state={state} server={server ?? ALL} />
      )}
    </>
  );
}

function Left({ state }: { readonly state: RecordingState }) {
  const now = useNow(1000);
  const last = Math.max(...state.recordings.map(({ until }) => Date.parse(until)));
  return t(traffic.recording, { left: leftText(last - now) });
}

interface RecordingDialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly state: RecordingState;
  /** The server that is proposed. */
  readonly server: string;
}

function RecordingDialog({ open, onOpenChange, state, server }: RecordingDialogProps) {
  const [of, setOf] = useState(server);
  const [minutes, setMinutes] = useState<number>(SPANS[0]);
  const servers = useOperation("listServers", { limit: 1000 }, { enabled: open });
  const change = useChange("setRecording", {
    outdates: ["getRecording"],
    onSuccess: (_output, input) => {
      toast(t(input.minutes === 0 ? traffic.stopped : traffic.started));
      if (input.minutes > 0) onOpenChange(false);
    },
  });
  const known = servers.data?.servers.map(({ id, name }) => [id, name] as const) ?? [];
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={t(traffic.recordTitle)}
      description={<RichText message={traffic.recordAbout} />}
      footer={
        <Button
          variant="primary"
          busy={change.isPending}
          onClick={() => change.mutate({ minutes, ...(of === ALL ? {} : { server: of }) })}
        >
          {t(traffic.start)}
        </Button>
      }
    >
      <div className="flex flex-col gap-4">
        {change.error !== null && <FailureBox error={change.error} />}
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label={t(traffic.recordOf)}>
            {(attributes) => (
              <Select
                {...attributes}
                className="w-full max-w-none"
                value={of}
                options={[[ALL, t(traffic.allServers)], ...known, ["local", t(traffic.localTools)]]}
                onChange={setOf}
              />
            )}
          </Field>
          <Field label={t(traffic.recordFor)}>
            {(attributes) => (
              <Select
                {...attributes}
                className="w-full max-w-none"
                value={String(minutes)}
                options={SPANS.map((span) => [String(span), spanWord(span)])}
                onChange={(text) => setMinutes(Number(text))}
              />
            )}
          </Field>
        </div>
        {state.arguments && (
          <p className="text-soft">
            <RichText message={traffic.byConfig} />
          </p>
        )}
        {state.results && (
          <p className="text-soft">
            <RichText message={traffic.resultsByConfig} />
          </p>
        )}
        {state.recordings.length > 0 && (
          <section aria-label={t(traffic.now)}>
            <h3 className="mb-1 font-medium">{t(traffic.now)}</h3>
            <ul className="flex flex-col divide-y divide-line rounded-md border border-line">
              {state.recordings.map(({ server: one, until }) => (
                <li key={one ?? ALL} className="flex items-center gap-3 px-3 py-1.5">
                  <span className="min-w-0 flex-1 truncate">{one ?? t(traffic.allServers)}</span>
                  <TimeLeft until={until} />
                  <Button
                    size="sm"
                    busy={change.isPending}
                    onClick={() => change.mutate({ minutes: 0, ...(one === null ? {} : { server: one }) })}
                  >
                    {t(traffic.stop)}
                  </Button>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </Dialog>
  );
}

function TimeLeft({ until }: { readonly until: string }) {
  const now = useNow(1000);
  return <span className="text-soft">{t(traffic.left, { left: leftText(Date.parse(until) - now) })}</span>;
}
