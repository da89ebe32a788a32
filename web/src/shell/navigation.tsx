import { Link, useRouterState } from "@tanstack/react-router";
import { Dialog } from "radix-ui";
import { useState } from "react";
import { IconButton } from "../components/button.tsx";
import { Icon } from "../components/icon.tsx";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { useOperation } from "../state/queries.ts";
import { PLACES } from "./places.ts";

/** Within reach of a thumb; the rest is in the menu. */
const ON_PHONE = 4;

function usePending(): number {
  return useOperation("listApprovals", { status: "pending", limit: 100 }).data?.total ?? 0;
}

function Count({ count }: { readonly count: number }) {
  if (count === 0) return null;
  return (
    <span className="rounded-full bg-warn px-1.5 text-xs leading-normal font-semibold text-panel">
      {count > 99 ? "99+" : count}
      <span className="sr-only"> {t(shell.waiting)}</span>
    </span>
  );
}

const ENTRY =
  "flex min-h-8.5 items-center gap-2 rounded-md px-3 text-soft -outline-offset-2 hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-wash aria-[current=page]:font-medium aria-[current=page]:text-accent";

function Entries({ onChoose }: { readonly onChoose?: () => void }) {
  const pending = usePending();
  return (
    <ul className="flex flex-col gap-0.5">
      {PLACES.map(({ to, label, icon }) => (
        <li key={to}>
          <Link
            to={to}
            className={ENTRY}
            activeOptions={{ exact: to === "/", includeSearch: false }}
            onClick={() => onChoose?.()}
          >
            <Icon name={icon} />
            <span className="flex-1">{t(label)}</span>
            {to === "/approvals" && <Count count={pending} />}
          </Link>
        </li>
      ))}
    </ul>
  );
}

export function SideNavigation() {
  return (
    <nav aria-label={t(shell.views)}>
      <Entries />
    </nav>
  );
}

export function BottomNavigation() {
  const [open, setOpen] = useState(false);
  const pending = usePending();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const isBehind = PLACES.slice(ON_PHONE).some(({ to }) => to === path);
  return (
    <nav
      aria-label={t(shell.views)}
      className="fixed inset-x-0 bottom-0 z-30 flex border-t border-line bg-panel pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {PLACES.slice(0, ON_PHONE).map(({ to, label, icon }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: to === "/", includeSearch: false }}
          className="relative flex min-h-13 min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-xs text-soft -outline-offset-2 aria-[current=page]:font-medium aria-[current=page]:text-accent"
        >
          <Icon name={icon} className="size-5" />
          {t(label)}
          {to === "/approvals" && (
            <span className="absolute top-1 left-1/2 ml-1.5">
              <Count count={pending} />
            </span>
          )}
        </Link>
      ))}
      <Dialog.Root open={open} onOpenChange={setOpen}>
        <Dialog.Trigger
          className={`flex min-h-13 min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-xs -outline-offset-2 ${isBehind ? "font-medium text-accent" : "text-soft"}`}
        >
          <Icon name="menu" className="size-5" />
          {t(shell.more)}
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Overlay className="fixed inset-0 z-40 bg-[rgb(8_14_12/55%)]" />
          <Dialog.Content
            aria-describedby={undefined}
            className="fixed inset-x-0 bottom-0 z-50 rounded-t-xl border-t border-line bg-panel p-3 shadow-float"
          >
            <div className="mb-1 flex items-center justify-between">
              <Dialog.Title className="px-2 font-semibold">{t(shell.views)}</Dialog.Title>
              <Dialog.Close asChild>
                <IconButton label={t(shell.close)} icon="close" />
              </Dialog.Close>
            </div>
            <div className="max-h-[70dvh] overflow-y-auto">
              <Entries onChoose={() => setOpen(false)} />
            </div>
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
    </nav>
  );
}
