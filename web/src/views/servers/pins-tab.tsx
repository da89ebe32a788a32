/** Changed and new definitions of a server since it was pinned, each with a button to approve it. */
import { useState } from "react";
import type { PinInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { useChange, useOperation } from "../../state/queries.ts";
import { PinBadge } from "../tools/pin-badge.tsx";
import { Diff } from "../tools/pin-tab.tsx";

const KIND_WORDS: Readonly<Record<PinInfo["kind"], Message>> = {
  tool: serverWords.pinTool,
  prompt: serverWords.pinPrompt,
  resource: serverWords.pinResource,
  template: serverWords.template,
  instructions: serverWords.pinInstructions,
};

export function PinsTab({ serverId }: { readonly serverId: string }) {
  const [asked, setAsked] = useState<PinInfo>();
  const query = useOperation("listPins", { serverId, limit: 1000 });
  const approve = useChange("changePins", {
    outdates: ["listPins", "listTools"],
    onSuccess: () => {
      setAsked(undefined);
      toast(t(serverWords.nowPinned));
    },
  });
  return (
    <>
      <Loaded query={query}>
        {({ pins }) => {
          const open = pins.filter(({ state }) => state === "changed" || state === "new");
          if (open.length === 0) {
            return (
              <Empty title={t(serverWords.nothingToApprove)}>
                {pins.length === 0 ? t(serverWords.nothingPinned) : t(serverWords.allUnchanged, { count: pins.length })}
              </Empty>
            );
          }
          return (
            <ul aria-label={t(serverWords.changedOrNew)} className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
              {open.map((pin) => (
                <li key={`${pin.kind} ${pin.tool}`} className="flex flex-col gap-2 px-4 py-3">
                  <div className="flex flex-wrap items-center gap-2">
                    <Badge>{t(KIND_WORDS[pin.kind])}</Badge>
                    {pin.kind !== "instructions" && (
                      <span className="min-w-0 font-mono text-sm break-all">{pin.tool}</span>
                    )}
                    <PinBadge pin={pin.state} />
                    <Button size="sm" onClick={() => setAsked(pin)}>
                      {t(toolWords.approve)}
                    </Button>
                  </div>
                  {pin.diff !== undefined && pin.diff.length > 0 && <Diff lines={pin.diff} />}
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
      <ConfirmDialog
        open={asked !== undefined}
        onOpenChange={(open) => !open && setAsked(undefined)}
        title={t(toolWords.approveAsk)}
        action={t(toolWords.approve)}
        busy={approve.isPending}
        error={approve.error}
        onConfirm={() => {
          if (asked === undefined) return;
          approve.mutate({ action: "approve", serverId, kind: asked.kind, tool: asked.tool });
        }}
      >
        {t(serverWords.approveHow)}
      </ConfirmDialog>
    </>
  );
}
