/** Allow, ask and deny: for one tool, for selected ones, for a server; for everyone or a role. */
import { useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { type ConfigChange, ReviewChange, RuleText, VerdictBadge } from "../../components/review-change.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useOperation } from "../../state/queries.ts";
import { patternsOf } from "./effect.ts";

type Verdict = Extract<ConfigChange, { kind: "rule" }>["verdict"];
const VERDICTS = [
  ["allow", rules.allow],
  ["ask", rules.ask],
  ["deny", rules.deny],
  ["none", rules.reset],
] as const satisfies readonly (readonly [Verdict, object])[];

interface VerdictButtonsProps {
  readonly patterns: readonly string[];
  readonly role: string | undefined;
  readonly size?: "sm" | "md";
  readonly onWritten?: (() => void) | undefined;
}

/** Each shows what it would change, and writes it then. */
function VerdictButtons({ patterns, role, size = "md", onWritten }: VerdictButtonsProps) {
  const [verdict, setVerdict] = useState<Verdict>();
  const word = VERDICTS.find(([each]) => each === verdict)?.[1];
  return (
    <>
      {VERDICTS.map(([each, label]) => (
        <Button key={each} size={size} variant={each === "none" ? "ghost" : "plain"} onClick={() => setVerdict(each)}>
          {t(label)}
        </Button>
      ))}
      {verdict !== undefined && word !== undefined && (
        <ReviewChange
          title={t(toolWords.reviewRule, { verdict: t(word), count: patterns.length, first: patterns[0] ?? "" })}
          changes={[{ kind: "rule", verdict, patterns: [...patterns], ...(role === undefined ? {} : { role }) }]}
          onClose={() => setVerdict(undefined)}
          {...(onWritten === undefined ? {} : { onWritten })}
        />
      )}
    </>
  );
}

interface SelectionBarProps {
  readonly names: readonly string[];
  readonly role: string | undefined;
  readonly onClear: () => void;
}

export function SelectionBar({ names, role, onClear }: SelectionBarProps) {
  return (
    <div
      role="toolbar"
      aria-label={t(toolWords.selection)}
      className="flex flex-wrap items-center gap-2 rounded-lg border border-line bg-accent-wash px-3 py-2"
    >
      <span className="mr-auto text-sm font-medium">
        {t(toolWords.selected, { count: names.length })}
        {role !== undefined && ` · ${t(rules.roleNamed, { role })}`}
      </span>
      <VerdictButtons patterns={names} role={role} size="sm" />
      <Button size="sm" variant="ghost" icon="close" onClick={onClear}>
        {t(rules.clearSelection)}
      </Button>
    </div>
  );
}

interface RoleChoiceProps {
  readonly value: string | undefined;
  readonly onChange: (role: string | undefined) => void;
}

function RoleChoice({ value, onChange }: RoleChoiceProps) {
  const roles = useOperation("listRoles", {});
  const known = roles.data?.roles.filter(({ editable }) => editable).map(({ role }) => role) ?? [];
  return (
    <Field label={t(rules.forWhom)}>
      {(attributes) => (
        <Select
          {...attributes}
          value={value ?? ""}
          options={[["", t(toolWords.everyone)], ...known.map((role) => [role, t(rules.roleNamed, { role })] as const)]}
          onChange={(role) => onChange(role === "" ? undefined : role)}
        />
      )}
    </Field>
  );
}

interface ServerRulesProps {
  readonly tools: readonly ToolInfo[];
  readonly serverId: string;
  readonly role: string | undefined;
  readonly onClose: () => void;
}

export function ServerRules({ tools, serverId, role: first, onClose }: ServerRulesProps) {
  const [role, setRole] = useState(first);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={t(rules.allOfServer, { server: serverId })}
      description={t(rules.shownFirst)}
    >
      <div className="flex flex-col gap-4">
        <RoleChoice value={role} onChange={setRole} />
        <div className="flex flex-wrap gap-2">
          <VerdictButtons patterns={patternsOf(tools)} role={role} onWritten={onClose} />
        </div>
      </div>
    </Dialog>
  );
}

/** The decision about one tool, the rule behind it, and another one in its place. */
export function RulesTab({ tool, role: first }: { readonly tool: ToolInfo; readonly role: string | undefined }) {
  const [role, setRole] = useState(first);
  const [what, setWhat] = useState<"tool" | "server">("tool");
  const seen = useOperation(
    "listTools",
    { name: tool.name, limit: 1, fields: "summary", access: true, role },
    { keep: true },
  );
  const ofServer = useOperation("listTools", { serverId: tool.serverId, limit: 1000, fields: "summary", access: true });
  const access = seen.data?.tools[0]?.access;
  const patterns = what === "tool" ? [tool.name] : patternsOf(ofServer.data?.tools ?? [tool]);
  return (
    <div className="flex flex-col gap-4 p-4">
      <RoleChoice value={role} onChange={setRole} />
      <div className="flex flex-col gap-1">
        <h3 className="font-semibold">{t(rules.decision)}</h3>
        {access !== undefined && (
          <p className="flex flex-wrap items-center gap-2">
            <VerdictBadge verdict={access.verdict} />
            {access.rule === null ? (
              <span className="text-sm text-soft">{t(rules.noRule)}</span>
            ) : (
              <RuleText rule={access.rule} />
            )}
          </p>
        )}
        {access?.conditional === true && <p className="text-sm text-soft">{t(rules.conditional)}</p>}
      </div>
      <div className="flex flex-col gap-2">
        <h3 className="font-semibold">{t(rules.change)}</h3>
        <p className="text-sm text-soft">{t(rules.shownFirst)}</p>
        <div className="flex flex-wrap items-center gap-2">
          <Select
            aria-label={t(rules.what)}
            value={what}
            options={[
              ["tool", t(rules.thisTool)],
              ["server", t(rules.allOfServer, { server: tool.serverId })],
            ]}
            onChange={(value) => setWhat(value === "server" ? "server" : "tool")}
          />
          <VerdictButtons patterns={patterns} role={role} />
        </div>
      </div>
    </div>
  );
}
