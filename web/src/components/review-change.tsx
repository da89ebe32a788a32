/** A change of the config before it is written: the diff, and what it does to clients and roles. */
import { useEffect, useState } from "react";
import type { InputOf, OutputOf } from "../../../src/contract/operations.ts";
import { failureOf } from "../failure.ts";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { rules } from "../messages/rules.ts";
import { useChange } from "../state/queries.ts";
import { numberText } from "../text.ts";
import { Badge } from "./badge.tsx";
import { Button } from "./button.tsx";
import { Code } from "./code.tsx";
import { Dialog } from "./dialog.tsx";
import { DiffLines } from "./diff.tsx";
import { Icon } from "./icon.tsx";
import { FailureBox, Skeleton } from "./states.tsx";
import { Cell, RowHead, Table } from "./table.tsx";
import { toast } from "./toast.tsx";

export type ConfigChange = InputOf<"changeConfig">["changes"][number];
type Planned = OutputOf<"changeConfig">;
type Affected = Planned["effect"]["roles"][number];

interface ReviewChangeProps {
  readonly title: string;
  readonly changes: readonly ConfigChange[];
  readonly onClose: () => void;
  /** It is written and applies. */
  readonly onWritten?: () => void;
}

export function ReviewChange({ title, changes, onClose, onWritten }: ReviewChangeProps) {
  const [planned, setPlanned] = useState<Planned>();
  const [isNew, setIsNew] = useState(false);
  const preview = useChange("changeConfig", { onSuccess: setPlanned });
  const write = useChange("changeConfig", {
    outdates: ["listTools", "listServers", "getServer", "getConfig", "listRoles", "listTokens", "explainPolicy"],
    onSuccess: (done) => {
      onWritten?.();
      if (done.token !== undefined) return;
      toast(t(rules.written, { where: done.diffs.map(({ where }) => where).join(", ") }));
      onClose();
    },
  });
  const lookAgain = (error: unknown): void => {
    if (failureOf(error).code !== "conflict") return;
    setIsNew(true);
    preview.mutate({ changes: [...changes] });
  };
  // Once: whoever wants another change opens another dialog.
  useEffect(() => preview.mutate({ changes: [...changes] }), []);
  const token = write.data?.token;
  if (token !== undefined)
    return (
      <Dialog
        open
        onOpenChange={onClose}
        title={t(rules.tokenMade)}
        description={t(rules.tokenOnce)}
        footer={
          <Button variant="primary" onClick={onClose}>
            {t(components.close)}
          </Button>
        }
      >
        <Code text={token} label={t(rules.token)} copy wrap />
      </Dialog>
    );
  const error = isNew && planned !== undefined ? preview.error : (write.error ?? preview.error);
  return (
    <Dialog
      open
      wide
      onOpenChange={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>{t(components.cancel)}</Button>
          <Button
            variant="primary"
            busy={write.isPending}
            disabled={planned === undefined || planned.diffs.length === 0 || preview.isPending}
            onClick={() =>
              write.mutate({ changes: [...changes], save: true, etag: planned?.etag }, { onError: lookAgain })
            }
          >
            {t(rules.write)}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {isNew && (
          <p role="alert" className="rounded-md bg-warn-wash px-3 py-2 text-warn">
            {t(rules.changedMeanwhile)}
          </p>
        )}
        {error !== null && <FailureBox error={error} />}
        {planned === undefined && error === null && <Skeleton lines={5} label={t(rules.working)} />}
        {planned !== undefined && <Plan planned={planned} />}
      </div>
    </Dialog>
  );
}

function Plan({ planned }: { readonly planned: Planned }) {
  const { diffs, unmet, notes } = planned;
  return (
    <>
      {diffs.length === 0 && <p>{t(rules.nothing)}</p>}
      {notes.map((note) => (
        <p key={note} className="flex gap-2 rounded-md bg-warn-wash px-3 py-2 break-words text-warn">
          <Icon name="warning" className="mt-0.5 size-4" />
          {note}
        </p>
      ))}
      {unmet.length > 0 && (
        <div className="rounded-md bg-warn-wash px-3 py-2 text-warn">
          <p className="font-medium">{t(rules.unmet)}</p>
          <ul className="list-disc pl-6 text-sm">
            {unmet.map(({ name, verdict, rule }) => (
              <li key={name} className="break-words">
                <span className="font-mono">{name}</span> <VerdictBadge verdict={verdict} />{" "}
                {rule !== null && <RuleText rule={rule} />}
              </li>
            ))}
          </ul>
        </div>
      )}
      {diffs.map(({ where, lines }) => (
        <section key={where} className="flex flex-col gap-1">
          <h3 className="font-mono text-sm font-medium break-all">{where}</h3>
          <DiffLines lines={lines} label={t(rules.diffOf, { where })} />
        </section>
      ))}
      {diffs.length > 0 && <Effect effect={planned.effect} />}
    </>
  );
}

function Effect({ effect }: { readonly effect: Planned["effect"] }) {
  const { clients, roles } = effect;
  const losing = clients.filter(({ counts }) => counts.loses > 0).length;
  const lines = [
    ...roles.map((each) => ({
      ...each,
      key: `role ${each.role ?? ""}`,
      who: each.role === null ? t(rules.everyone) : t(rules.roleNamed, { role: each.role }),
    })),
    ...clients.map((each) => ({
      ...each,
      key: each.session,
      who: t(rules.clientNamed, { client: each.client ?? each.user ?? t(rules.aClient) }),
    })),
  ];
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">{t(rules.effect)}</h3>
      {losing > 0 && <p className="text-bad">{t(rules.clientsLose, { count: losing })}</p>}
      {lines.length === 0 ? (
        <p className="text-soft">{t(rules.noEffect)}</p>
      ) : (
        <Table
          label={t(rules.effect)}
          className="rounded-md border border-line"
          heads={[t(rules.who), t(rules.loses), t(rules.gains), t(rules.asks), t(rules.frees)]}
        >
          {lines.map((line) => (
            <tr key={line.key}>
              <RowHead>{line.who}</RowHead>
              <Count line={line} kind="loses" tone="bad" />
              <Count line={line} kind="gains" tone="ok" />
              <Count line={line} kind="asks" tone="warn" />
              <Count line={line} kind="frees" tone="info" />
            </tr>
          ))}
        </Table>
      )}
      {lines.length > 0 && <ChangedTools lines={lines} />}
    </section>
  );
}

interface CountProps {
  readonly line: Pick<Affected, "counts" | "loses" | "gains" | "asks" | "frees">;
  readonly kind: "loses" | "gains" | "asks" | "frees";
  readonly tone: "bad" | "ok" | "warn" | "info";
}

function Count({ line, kind, tone }: CountProps) {
  return (
    <Cell>
      {line.counts[kind] === 0 ? (
        <span className="text-faint">0</span>
      ) : (
        <Badge tone={tone} title={line[kind].join("\n")}>
          {numberText(line.counts[kind])}
        </Badge>
      )}
    </Cell>
  );
}

/** The names, once each: mostly everyone loses the same. */
function ChangedTools({ lines }: { readonly lines: readonly Pick<Affected, "loses" | "gains" | "asks" | "frees">[] }) {
  const names = new Set(lines.flatMap(({ loses, gains, asks, frees }) => [...loses, ...gains, ...asks, ...frees]));
  return (
    <details className="text-sm">
      <summary className="cursor-pointer text-accent">{t(rules.whichTools)}</summary>
      <p className="mt-1 font-mono break-all text-soft">{[...names].join(", ")}</p>
    </details>
  );
}

const VERDICTS = {
  allow: { word: rules.allowed, tone: "ok" },
  ask: { word: rules.asked, tone: "warn" },
  deny: { word: rules.denied, tone: "neutral" },
} as const;

export function VerdictBadge({ verdict, title }: { readonly verdict: keyof typeof VERDICTS; readonly title?: string }) {
  const { word, tone } = VERDICTS[verdict];
  return (
    <Badge tone={tone} {...(title === undefined ? {} : { title })}>
      {t(word)}
    </Badge>
  );
}

interface ShownRule {
  readonly list: string;
  readonly pattern: string;
  readonly where: string;
}

export function ruleText({ list, pattern, where }: ShownRule): string {
  return `${t(rules.byRule, { list, pattern })} ${t(rules.inPlace, { where })}`;
}

export function RuleText({ rule }: { readonly rule: ShownRule }) {
  return (
    <span className="text-sm break-words text-soft">
      <code className="font-mono text-ink">{t(rules.byRule, { list: rule.list, pattern: rule.pattern })}</code>{" "}
      <span className="break-all">{t(rules.inPlace, { where: rule.where })}</span>
    </span>
  );
}
