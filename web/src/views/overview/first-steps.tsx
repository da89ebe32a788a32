/** Leads through a new hub: try a tool, connect a client, add a server, import skills. What is done is not shown. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { runLive } from "../../api.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { Field, Select, TextArea } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { FailureBox } from "../../components/states.tsx";
import { firstSteps } from "../../messages/first-steps.ts";
import { type Message, t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { ConnectClientButton } from "../settings/connect-client.tsx";
import { recordedContent } from "../traffic/recorded-content.ts";
import { argumentsOf, isDemoFile, sampleCall, type SampleCall } from "./sample-call.ts";

const KEY = "toolcrib.first-steps";

function wasDismissed(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}

type StepId = "try" | "connect" | "add" | "skills";

/** Which steps were done before the page was opened; undefined until that is known. */
function useDone(enabled: boolean): ReadonlySet<StepId> | undefined {
  const calls = useOperation("listAudit", { type: "call", outcome: "ok", limit: 1 }, { enabled });
  const sessions = useOperation("listSessions", { state: "all", door: "mcp", limit: 1 }, { enabled });
  const clients = useOperation("clientSnippets", {}, { enabled });
  const servers = useOperation("listServers", { limit: 1000 }, { enabled });
  const skills = useOperation("listSkills", { limit: 1 }, { enabled });
  if (!calls.data || !sessions.data || !clients.data || !servers.data || !skills.data) return undefined;
  const done: readonly (readonly [StepId, boolean])[] = [
    ["try", calls.data.entries.length > 0],
    ["connect", sessions.data.total > 0 || clients.data.clients.some(({ connected }) => connected)],
    ["add", servers.data.servers.some(({ origin }) => !isDemoFile(origin.file))],
    ["skills", skills.data.total > 0],
  ];
  return new Set(done.flatMap(([id, is]) => (is ? [id] : [])));
}

const STEPS: readonly (readonly [id: StepId, title: Message])[] = [
  ["try", firstSteps.tryTool],
  ["connect", firstSteps.connectClient],
  ["add", firstSteps.addServer],
  ["skills", firstSteps.importSkills],
];

export function FirstSteps() {
  const [dismissed, setDismissed] = useState(wasDismissed);
  const done = useDone(!dismissed);
  // Those that were left when the page was opened: what is done now stays until then, with its result.
  const [begun, setBegun] = useState<readonly StepId[]>();
  if (begun === undefined && done !== undefined) setBegun(STEPS.flatMap(([id]) => (done.has(id) ? [] : [id])));
  const [chosen, setChosen] = useState<StepId>();
  const [here, setHere] = useState<ReadonlySet<StepId>>(new Set());
  if (dismissed || done === undefined || begun === undefined || begun.length === 0) return null;
  const isDone = (id: StepId): boolean => done.has(id) || here.has(id);
  const open = chosen ?? begun.find((id) => !isDone(id));
  const left = begun.filter((id) => !isDone(id)).length;
  return (
    <section aria-label={t(firstSteps.title)} className="rounded-lg border border-accent bg-panel">
      <div className="flex min-h-11 items-center gap-3 border-b border-line py-1.5 pr-2 pl-4">
        <h2 className="font-semibold">{t(firstSteps.title)}</h2>
        <span className="flex-1 text-sm text-soft">{left > 0 && t(firstSteps.left, { count: left })}</span>
        <IconButton
          label={t(firstSteps.dismiss)}
          icon="close"
          onClick={() => {
            setDismissed(true);
            try {
              localStorage.setItem(KEY, "dismissed");
            } catch {
              // Then it comes back with the next visit.
            }
          }}
        />
      </div>
      <ol className="divide-y divide-line">
        {STEPS.filter(([id]) => begun.includes(id)).map(([id, title], index) => (
          <Step
            key={id}
            number={index + 1}
            title={t(title)}
            isDone={isDone(id)}
            isOpen={open === id}
            onOpen={() => setChosen(id)}
          >
            {id === "try" && (
              <TryStep onDone={() => setHere((old) => new Set([...old, "try"]))} onRun={() => setChosen("try")} />
            )}
            {id === "connect" && <ConnectStep onDone={() => setChosen("connect")} />}
            {id === "add" && (
              <Offer how={firstSteps.addHow}>
                <Link to="/servers" search={{ add: "1" }} className={PRIMARY}>
                  <Icon name="plus" />
                  {t(firstSteps.add)}
                </Link>
              </Offer>
            )}
            {id === "skills" && <SkillsStep />}
          </Step>
        ))}
      </ol>
    </section>
  );
}

const PRIMARY =
  "inline-flex min-h-9 items-center gap-1.5 rounded-md bg-accent px-3 font-medium text-accent-ink hover:opacity-90";
const PLAIN =
  "inline-flex min-h-9 items-center gap-1.5 rounded-md border border-line-strong bg-panel px-3 font-medium hover:bg-hover";

interface StepProps {
  readonly number: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  readonly children: ReactNode;
}

function Step({ number, title, isDone, isOpen, onOpen, children }: StepProps) {
  return (
    <li>
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={onOpen}
          className="flex min-h-11 w-full items-center gap-3 px-4 text-left -outline-offset-2 hover:bg-hover"
        >
          <span
            aria-hidden="true"
            className={`flex size-5.5 shrink-0 items-center justify-center rounded-full text-sm font-semibold ${isDone ? "bg-ok-wash text-ok" : "bg-accent-wash text-accent"}`}
          >
            {isDone ? <Icon name="check" className="size-3.5" /> : number}
          </span>
          <span className={`font-medium ${isDone ? "text-soft line-through decoration-line-strong" : ""}`}>
            {title}
          </span>
          {isDone && <span className="sr-only">{t(firstSteps.done)}</span>}
          <Icon name="down" className={`ml-auto size-4 text-faint ${isOpen ? "rotate-180" : ""}`} />
        </button>
      </h3>
      {isOpen && <div className="px-4 pb-4 sm:pl-12">{children}</div>}
    </li>
  );
}

function Offer({ how, children }: { readonly how: Message; readonly children: ReactNode }) {
  return (
    <div className="flex flex-col gap-3">
      <p className="text-soft">{t(how)}</p>
      <div className="flex flex-wrap gap-2">{children}</div>
    </div>
  );
}

interface TryProps {
  readonly onDone: () => void;
  readonly onRun: () => void;
}

function TryStep(props: TryProps) {
  const query = useOperation("listTools", { limit: 1000 });
  const call = query.data === undefined ? undefined : sampleCall(query.data.tools);
  if (call === undefined) return <p className="text-soft">{t(firstSteps.noTool)}</p>;
  return <Sample key={call.name} call={call} {...props} />;
}

type Ran = { readonly text: string } | { readonly error: unknown } | "running" | undefined;

function Sample({ call, onDone, onRun }: TryProps & { readonly call: SampleCall }) {
  const [text, setText] = useState(JSON.stringify(call.arguments, undefined, 2));
  const [ran, setRan] = useState<Ran>();
  const args = argumentsOf(text);
  const run = async (): Promise<void> => {
    if (args === undefined) return;
    onRun();
    setRan("running");
    try {
      const result = await runLive("callTool", { toolName: call.name, args });
      const content = recordedContent(JSON.stringify(result));
      setRan({ text: "texts" in content ? content.texts.join("\n") : JSON.stringify(result, undefined, 2) });
      onDone();
    } catch (error) {
      setRan({ error });
    }
  };
  return (
    <div className="flex max-w-2xl flex-col gap-3">
      <p className="text-soft">{t(firstSteps.tryHow)}</p>
      <p className="font-mono font-medium break-all">{call.name}</p>
      <Field label={t(firstSteps.arguments)} error={args === undefined ? t(firstSteps.notJson) : undefined}>
        {(attributes) => (
          <TextArea
            {...attributes}
            mono
            rows={Math.min(text.split("\n").length, 8)}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <div className="flex flex-wrap items-center gap-3">
        <Button
          variant="primary"
          icon="play"
          busy={ran === "running"}
          disabled={args === undefined}
          onClick={() => void run()}
        >
          {t(firstSteps.run)}
        </Button>
        <Link to="/tools" search={{ tool: call.name }} className="text-accent underline">
          {t(firstSteps.openTool)}
        </Link>
      </div>
      <div aria-live="polite">
        {ran !== undefined && ran !== "running" && "error" in ran && <FailureBox error={ran.error} />}
        {ran !== undefined && ran !== "running" && "text" in ran && (
          <>
            <h4 className="mb-1 font-medium">{t(firstSteps.result)}</h4>
            <Code text={ran.text} label={t(firstSteps.result)} wrap className="max-h-60" />
          </>
        )}
      </div>
    </div>
  );
}

function ConnectStep({ onDone }: { readonly onDone: () => void }) {
  const clients = useOperation("clientSnippets", {}).data?.clients ?? [];
  const [chosen, setChosen] = useState<string>();
  const found = clients.filter(({ installed }) => installed);
  const shown = clients.find(({ id }) => id === chosen) ?? clients[0];
  return (
    <div className="flex max-w-2xl flex-col gap-3">
      <p className="text-soft">{t(firstSteps.connectHow)}</p>
      {found.length > 0 ? (
        <ul className="divide-y divide-line rounded-md border border-line">
          {found.map((client) => (
            <li key={client.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2">
              <div className="min-w-0 flex-1">
                <p className="font-medium">
                  {client.title} {client.connected && <Badge tone="ok">{t(firstSteps.connected)}</Badge>}
                </p>
                <p className="truncate font-mono text-sm text-faint">{client.file}</p>
              </div>
              <ConnectClientButton client={client} onDone={onDone} />
            </li>
          ))}
        </ul>
      ) : (
        shown !== undefined && (
          <>
            <Field label={t(firstSteps.noneFound)}>
              {(attributes) => (
                <Select
                  {...attributes}
                  value={shown.id}
                  options={clients.map(({ id, title }) => [id, title] as const)}
                  onChange={setChosen}
                />
              )}
            </Field>
            <Code text={shown.command} label={t(firstSteps.command, { client: shown.title })} copy wrap />
          </>
        )
      )}
      <Link to="/settings" search={{ tab: "clients" }} className="text-accent underline">
        {t(firstSteps.moreClients)}
      </Link>
    </div>
  );
}

function SkillsStep() {
  const places = useOperation("skillPlaces", {}).data?.places.filter(({ exists }) => exists) ?? [];
  return (
    <Offer how={firstSteps.importHow}>
      {places.map(({ path, label }) => (
        <Link key={path} to="/skills" search={{ scan: path }} title={path} className={PLAIN}>
          <Icon name="skills" />
          {label}
        </Link>
      ))}
      <Link to="/skills" search={{ scan: "1" }} className={places.length === 0 ? PRIMARY : PLAIN}>
        {t(firstSteps.otherFolder)}
      </Link>
    </Offer>
  );
}
