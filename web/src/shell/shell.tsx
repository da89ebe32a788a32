/** The frame around every view. */
import { Outlet } from "@tanstack/react-router";
import { Suspense } from "react";
import type { Me } from "../../../src/contract/settings-schemas.ts";
import { IconButton } from "../components/button.tsx";
import { Skeleton } from "../components/states.tsx";
import { BASE } from "../base.ts";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { useConnectionStatus } from "../state/live.ts";
import { useAttention } from "./attention.ts";
import { ConnectionBanner } from "./connection-banner.tsx";
import { BottomNavigation, SideNavigation } from "./navigation.tsx";
import { Questions } from "./questions.tsx";
import { useTheme } from "./theme.ts";

export function Shell({ me }: { readonly me: Me }) {
  useAttention();
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[13rem_minmax(0,1fr)]">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-[70] focus:rounded-md focus:bg-panel focus:px-3 focus:py-2 focus:shadow-float"
        onClick={(event) => {
          // The address stays as it is: it is the router's.
          event.preventDefault();
          document.querySelector<HTMLElement>("#main")?.focus();
        }}
      >
        {t(shell.skipToContent)}
      </a>
      <header className="flex items-center gap-3 border-b border-line bg-panel px-3 py-2 md:sticky md:top-0 md:h-dvh md:flex-col md:items-stretch md:border-r md:border-b-0 md:p-3">
        <Brand />
        <div className="hidden flex-1 md:block">
          <SideNavigation />
        </div>
        <div className="flex flex-1 items-center justify-end gap-2 md:flex-none md:justify-between">
          <Who me={me} />
          <ThemeButton />
        </div>
      </header>
      <div className="flex min-w-0 flex-col">
        <ConnectionBanner />
        <main id="main" tabIndex={-1} className="min-w-0 flex-1 pb-16 outline-none md:pb-0">
          <Suspense fallback={<Skeleton lines={8} />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <BottomNavigation />
      <Questions />
    </div>
  );
}

function Brand() {
  return (
    <div className="flex items-center gap-2 font-semibold md:px-2 md:pt-1 md:pb-3">
      <img src={`${BASE}/icon.svg`} alt="" width="22" height="22" />
      Toolcrib
    </div>
  );
}

function Who({ me }: { readonly me: Me }) {
  const status = useConnectionStatus();
  const words = { open: shell.live, connecting: shell.connecting, lost: shell.offline, closed: shell.offline }[status];
  return (
    <div className="min-w-0 text-xs leading-4 text-faint md:px-2">
      <div className="truncate">
        {me.user ?? t(shell.operator)}
        <span className="hidden md:inline"> · {me.version}</span>
      </div>
      <div className="flex items-center gap-1.5">
        <span
          aria-hidden="true"
          className={`size-2 rounded-full ${status === "open" ? "bg-ok" : "border-2 border-warn"}`}
        />
        {t(words)}
      </div>
    </div>
  );
}

function ThemeButton() {
  const [theme, toggle] = useTheme();
  return (
    <IconButton
      label={t(theme === "dark" ? shell.useLight : shell.useDark)}
      icon={theme === "dark" ? "sun" : "moon"}
      onClick={toggle}
    />
  );
}
