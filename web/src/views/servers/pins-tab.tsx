/** What a server changed, or offers newly, since it was pinned: of every kind, each with the way to approve it. */
import { useState } from "react";
import type { PinInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Empty, Loaded } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { useChange, useOperation } from "../../state/queries.ts";
import { PinBadge } from "../tools/pin-badge.tsx";
import { Diff } from "../tools/pin-tab.tsx";

export function PinsTab({ serverId }: { readonly serverId: string }) {
  const [asked, setAsked] = useState<PinInfo>();
  const query = useOperation("listPins", { serverId, limit: 1000 });
  const approve = useChange("changePins", {
    outdates: ["listPins", "listTools"],
    onSuccess: () => {
      setAsked(undefined);
      toast("The current definition is pinned.");
    },
  });
  return (
    <>
      <Loaded query={query}>
        {({ pins }) => {
          const open = pins.filter(({ state }) => state === "changed" || state === "new");
          if (open.length === 0) {
            return (
              <Empty title="Nothing to approve">
                {pins.length === 0 ? "Nothing is pinned for this server." : `All ${pins.length} pins are unchanged.`}
              </Empty>
            );
          }
          return (
            <ul aria-label="Changed or new" className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
              {open.map((pin) => (
                <li key={`${pin.kind} ${pin.tool}`} className="flex flex-col gap-2 px-4 py-3">
                  <div className="flex flex-wrap items-center gap-2">
                    <Badge>{pin.kind}</Badge>
                    {pin.kind !== "instructions" && (
                      <span className="min-w-0 font-mono text-sm break-all">{pin.tool}</span>
                    )}
                    <PinBadge pin={pin.state} />
                    <Button size="sm" onClick={() => setAsked(pin)}>
                      Approve
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
        title="Approve this definition?"
        action="Approve"
        busy={approve.isPending}
        error={approve.error}
        onConfirm={() => {
          if (asked === undefined) return;
          approve.mutate({ action: "approve", serverId, kind: asked.kind, tool: asked.tool });
        }}
      >
        Agents then get the current definition of the server. Read the changes first: the server wrote them.
      </ConfirmDialog>
    </>
  );
}
