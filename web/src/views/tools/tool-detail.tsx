/** One tool: what it says of itself, its pin, and a way to try it. */
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button, IconButton } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { activity } from "../../messages/activity.ts";
import { t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { OverrideTab } from "./override-tab.tsx";
import { PinBadge } from "./pin-badge.tsx";
import { PinTab } from "./pin-tab.tsx";
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
  readonly onClose: () => void;
  /** It has another public name from now on. */
  readonly onRename: (name: string) => void;
}

export function ToolDetail({ name, onClose, onRename }: ToolDetailProps) {
  const query = useOperation("listTools", { name, limit: 1, fields: "all" });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label="Loading the tool" />}>
      {({ tools: [tool] }) =>
        tool === undefined ? (
          <Empty title="This tool does not exist" action={<Button onClick={onClose}>Back to the tools</Button>}>
            Its server may be disconnected, or no longer offers it.
          </Empty>
        ) : (
          <Known tool={tool} onClose={onClose} onRename={onRename} />
        )
      }
    </Loaded>
  );
}

function Known({ tool, onClose, onRename }: Omit<ToolDetailProps, "name"> & { readonly tool: ToolInfo }) {
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
              on{" "}
              <Link to="/servers" search={{ server: tool.serverId }} className="text-accent hover:underline">
                {tool.serverId}
              </Link>
            </span>
            <PinBadge pin={tool.pin} />
            {tool.original !== undefined && (
              <Badge tone="info" title="The config changes what the server offers.">
                overridden
              </Badge>
            )}
            <Annotations annotations={tool.annotations ?? {}} />
          </div>
          {tool.quarantined !== undefined && (
            <p className="mt-2 rounded-md bg-bad-wash px-3 py-2 text-bad">Not offered to agents: {tool.quarantined}</p>
          )}
        </div>
        {tab !== "try" && (
          <Button variant="primary" size="sm" icon="play" onClick={() => setTab("try")}>
            Try it
          </Button>
        )}
        <IconButton label="Close the details" icon="close" onClick={onClose} />
      </div>
      <Tabs
        label="About this tool"
        value={tab}
        onChange={setTab}
        tabs={[
          { id: "definition", label: "Definition", content: <Definition tool={tool} /> },
          { id: "try", label: "Try it", content: <TryIt key={tool.fingerprint} tool={tool} /> },
          ...(isOfServer
            ? [{ id: "override", label: "Override", content: <OverrideTab tool={tool} onRename={onRename} /> }]
            : []),
          { id: "usage", label: t(activity.usage), content: <Usage name={tool.name} /> },
          { id: "pin", label: "Pin", content: <PinTab tool={tool} /> },
          {
            id: "json",
            label: "JSON",
            content: (
              <div className="p-4">
                <Code
                  text={JSON.stringify(tool, undefined, 2)}
                  label="The definition as JSON"
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
        <p className="text-soft">It has no description.</p>
      ) : (
        <Markdown text={tool.description} />
      )}
      <div>
        <h3 className="mb-1 font-semibold">Arguments</h3>
        <SchemaTable schema={tool.inputSchema ?? {}} label="Arguments" />
      </div>
      {tool.outputSchema !== undefined && (
        <div>
          <h3 className="mb-1 font-semibold">Result</h3>
          <SchemaTable schema={tool.outputSchema} label="Parts of the result" />
        </div>
      )}
    </div>
  );
}

/** The effects of the tool as its server declares them, unchecked, or as the config corrects them. */
const HINTS: readonly (readonly [key: string, value: boolean, label: string, tone: Tone])[] = [
  ["readOnlyHint", true, "read-only", "ok"],
  ["destructiveHint", true, "destructive", "bad"],
  ["idempotentHint", true, "idempotent", "neutral"],
  ["openWorldHint", true, "reaches outside", "info"],
];

function Annotations({ annotations }: { readonly annotations: Readonly<Record<string, unknown>> }) {
  return HINTS.filter(([key, value]) => annotations[key] === value).map(([key, , label, tone]) => (
    <Badge key={key} tone={tone} title={`The server or the config says so (${key}).`}>
      {label}
    </Badge>
  ));
}
