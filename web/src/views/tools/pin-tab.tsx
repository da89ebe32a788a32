/** Whether a tool is still what it was when it was first trusted. */
import { useState } from "react";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { KeyValues } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Loaded } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { PIN_WORDS, PinBadge } from "./pin-badge.tsx";

export function PinTab({ tool }: { readonly tool: ToolInfo }) {
  const [asking, setAsking] = useState(false);
  const pins = useOperation("listPins", { serverId: tool.serverId, kind: "tool", limit: 1000 });
  const approve = useChange("changePins", {
    outdates: ["listPins", "listTools"],
    onSuccess: () => {
      setAsking(false);
      toast(t(toolWords.nowPinned, { name: tool.name }));
    },
  });
  return (
    <div className="flex flex-col gap-4 p-4">
      <Loaded query={pins}>
        {({ pins: known }) => {
          const pin = known.find((each) => each.tool === tool.mcpName && each.pinnedAt !== "");
          const diff = known.find((each) => each.tool === tool.mcpName)?.diff ?? [];
          return (
            <>
              <KeyValues
                rows={[
                  [t(toolWords.state), <PinBadge key="state" pin={tool.pin} />],
                  [t(toolWords.meaning), t(PIN_WORDS[tool.pin].meaning)],
                  [
                    t(toolWords.now),
                    <code key="now" className="font-mono text-sm break-all">
                      {tool.original?.fingerprint ?? tool.fingerprint}
                    </code>,
                  ],
                  ...(pin === undefined
                    ? []
                    : ([
                        [
                          t(toolWords.pinnedThen),
                          <code key="then" className="font-mono text-sm break-all">
                            {pin.fingerprint}
                          </code>,
                        ],
                        [t(toolWords.since), <Time key="since" at={pin.pinnedAt} />],
                      ] as const)),
                ]}
              />
              {diff.length > 0 && <Diff lines={diff} />}
              {(tool.pin === "changed" || tool.pin === "new") && (
                <div>
                  <Button variant="primary" onClick={() => setAsking(true)}>
                    {t(toolWords.approveThis)}
                  </Button>
                </div>
              )}
            </>
          );
        }}
      </Loaded>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t(toolWords.approveAsk)}
        action={t(toolWords.approve)}
        busy={approve.isPending}
        error={approve.error}
        onConfirm={() => approve.mutate({ action: "approve", serverId: tool.serverId, tool: tool.mcpName })}
      >
        <RichText
          message={toolWords.approveHow}
          values={{ name: <span className="font-mono break-all text-ink">{tool.name}</span> }}
        />
      </ConfirmDialog>
    </div>
  );
}

/** Within a line `[-…-]` was taken out and `{+…+}` is new. */
function Words({ line }: { readonly line: string }) {
  return line.split(/(\[-.*?-\]|\{\+.*?\+\})/s).map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : part.startsWith("[") ? (
      <del key={index} className="rounded-sm bg-bad-wash px-0.5 text-bad">
        {part.slice(2, -2)}
      </del>
    ) : (
      <ins key={index} className="rounded-sm bg-ok-wash px-0.5 text-ok">
        {part.slice(2, -2)}
      </ins>
    ),
  );
}

export function Diff({ lines }: { readonly lines: readonly string[] }) {
  return (
    <div>
      <h3 className="mb-1 font-medium">{t(toolWords.whatChanged)}</h3>
      <pre
        tabIndex={0}
        role="group"
        aria-label={t(toolWords.whatChanged)}
        className="overflow-x-auto rounded-md border border-line bg-sunken py-2 font-mono text-sm"
      >
        {lines.map((line, index) => (
          <div
            key={index}
            className={`px-3 whitespace-pre-wrap ${line.startsWith("+") ? "bg-ok-wash text-ok" : line.startsWith("-") ? "bg-bad-wash text-bad" : ""}`}
          >
            <Words line={line} />
          </div>
        ))}
      </pre>
    </div>
  );
}
