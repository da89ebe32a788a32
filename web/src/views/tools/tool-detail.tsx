/** One tool: what it says of itself, its pin, and a way to try it. */
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { VerdictBadge } from "../../components/review-change.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { activity } from "../../messages/activity.ts";
import { components } from "../../messages/components.ts";
import { type Message, t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useOperation } from "../../state/queries.ts";
import { OverrideTab } from "./override-tab.tsx";
import { PinBadge } from "./pin-badge.tsx";
import { PinTab } from "./pin-tab.tsx";
import { RulesTab } from "./rule-form.tsx";
import { EffectBadge } from "./tool-lines.tsx";
import { SchemaTable } from "./schema-table.tsx";
import { TryIt } from "./try-it.tsx";

/** With its charts it is half as large as the rest of the view. */
const UsageTab = lazy(async () => ({ default: (await import("./usage-tab.tsx")).UsageTab }));

function Usage({ name }: { readonly name: string }) {
  return (
    <Suspense fallback={<Skeleton />}>
      <UsageTab name={name} />
    </Suspense>
  );
}

interface ToolDetailProps {
  readonly name: string;
  /** As whom the list is looked at. */
  readonly role: string | undefined;
  readonly onClose: () => void;
  /** It has another public name from now on. */
  readonly onRename: (name: string) => void;
}

export function ToolDetail({ name, role, onClose, onRename }: ToolDetailProps) {
  const query = useOperation("listTools", { name, limit: 1, fields: "all", access: true });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label={t(toolWords.loadingOne)} />}>
      {({ tools: [tool] }) =>
        tool === undefined ? (
          <Empty title={t(toolWords.missing)} action={<Button onClick={onClose}>{t(toolWords.back)}</Button>}>
            {t(toolWords.missingHow)}
          </Empty>
        ) : (
          <Known tool={tool} role={role} onClose={onClose} onRename={onRename} />
        )
      }
    </Loaded>
  );
}

function Known({ tool, role, onClose, onRename }: Omit<ToolDetailProps, "name"> & { readonly tool: ToolInfo }) {
  const [tab, setTab] = useState("definition");
  // In-process tools and skills are changed where they are made.
  const isOfServer = tool.server !== "local" && !tool.server.startsWith("toolcrib:");
  return (
    <>
      <div className="flex items-start gap-2 p-4">
        <div className="min-w-0 flex-1">
          <h2 className="font-mono text-lg font-semibold break-all">{tool.name}</h2>
          <div className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-soft">
            {tool.title !== undefined && <span className="break-words">{tool.title}</span>}
            <span>
              <RichText
                message={toolWords.onServer}
                values={{
                  server: (
                    <Link to="/servers" search={{ server: tool.serverId }} className="text-accent hover:underline">
                      {tool.serverId}
                    </Link>
                  ),
                }}
              />
            </span>
            <PinBadge pin={tool.pin} />
            {tool.original !== undefined && (
              <Badge tone="info" title={t(toolWords.overriddenMeaning)}>
                {t(toolWords.overridden)}
              </Badge>
            )}
            {tool.access !== undefined && tool.access.verdict !== "allow" && (
              <VerdictBadge verdict={tool.access.verdict} />
            )}
            <EffectBadge tool={tool} />
            <Annotations annotations={tool.annotations ?? {}} />
          </div>
          {tool.quarantined !== undefined && (
            <p className="mt-2 rounded-md bg-bad-wash px-3 py-2 text-bad">
              {t(toolWords.notOfferedBecause, { reason: tool.quarantined })}
            </p>
          )}
        </div>
        {tab !== "try" && (
          <Button variant="primary" size="sm" icon="play" onClick={() => setTab("try")}>
            {t(toolWords.tryIt)}
          </Button>
        )}
        <IconButton label={t(components.closeDetails)} icon="close" onClick={onClose} />
      </div>
      <Tabs
        label={t(toolWords.about)}
        value={tab}
        onChange={setTab}
        tabs={[
          { id: "definition", label: t(toolWords.definition), content: <Definition tool={tool} /> },
          { id: "try", label: t(toolWords.tryIt), content: <TryIt key={tool.fingerprint} tool={tool} /> },
          ...(isOfServer
            ? [
                {
                  id: "override",
                  label: t(toolWords.override),
                  content: <OverrideTab tool={tool} onRename={onRename} />,
                },
              ]
            : []),
          { id: "usage", label: t(activity.usage), content: <Usage name={tool.name} /> },
          { id: "rules", label: t(toolWords.rules), content: <RulesTab tool={tool} role={role} /> },
          { id: "pin", label: t(toolWords.pin), content: <PinTab tool={tool} /> },
          {
            id: "json",
            label: "JSON",
            content: (
              <div className="p-4">
                <Code
                  text={JSON.stringify(tool, undefined, 2)}
                  label={t(toolWords.asJson)}
                  copy
                  className="max-h-[60dvh]"
                />
              </div>
            ),
          },
        ]}
      />
    </>
  );
}

function Definition({ tool }: { readonly tool: ToolInfo }) {
  return (
    <div className="flex flex-col gap-4 p-4">
      {tool.description === undefined ? (
        <p className="text-soft">{t(toolWords.noDescription)}</p>
      ) : (
        <Markdown text={tool.description} />
      )}
      <div>
        <h3 className="mb-1 font-semibold">{t(toolWords.arguments)}</h3>
        <SchemaTable schema={tool.inputSchema ?? {}} label={t(toolWords.arguments)} />
      </div>
      {tool.outputSchema !== undefined && (
        <div>
          <h3 className="mb-1 font-semibold">{t(toolWords.result)}</h3>
          <SchemaTable schema={tool.outputSchema} label={t(toolWords.resultParts)} />
        </div>
      )}
    </div>
  );
}

/** Further effects that its server declares, unchecked, or as the config corrects them. */
const HINTS: readonly (readonly [key: string, label: Message, tone: Tone])[] = [
  ["idempotentHint", toolWords.idempotent, "neutral"],
  ["openWorldHint", toolWords.reachesOut, "info"],
];

function Annotations({ annotations }: { readonly annotations: Readonly<Record<string, unknown>> }) {
  return HINTS.filter(([key]) => annotations[key] === true).map(([key, label, tone]) => (
    <Badge key={key} tone={tone} title={t(toolWords.hintSays, { key })}>
      {t(label)}
    </Badge>
  ));
}
