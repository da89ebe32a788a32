/** The frame around every view. */
import { Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { Me } from "../../../src/contract/settings-schemas.ts";
import { IconButton } from "../components/button.tsx";
import { Icon } from "../components/icon.tsx";
import { Skeleton } from "../components/states.tsx";
import { BASE } from "../base.ts";
import { t } from "../messages/messages.ts";
import { palette } from "../messages/palette.ts";
import { shell } from "../messages/shell.ts";
import { AccountMenu } from "./account-menu.tsx";
import { useAttention } from "./attention.ts";
import { ConnectionBanner } from "./connection-banner.tsx";
import { BottomNavigation, SideNavigation } from "./navigation.tsx";
import { Questions } from "./questions.tsx";
import { Key, PALETTE_KEYS, ShortcutsDialog, useShortcuts } from "./shortcuts.tsx";

const Palette = lazy(async () => ({ default: (await import("./palette.tsx")).Palette }));

/** Something that lies over the view. */
type Over = "palette" | "shortcuts" | undefined;

export function Shell({ me }: { readonly me: Me }) {
  useAttention();
  const [over, setOver] = useState<Over>();
  useShortcuts({
    onPalette: () => setOver((now) => (now === "palette" ? undefined : "palette")),
    onHelp: () => setOver("shortcuts"),
  });
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[13.5rem_minmax(0,1fr)]">
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
      <header className="z-20 flex items-center gap-2 border-b border-line bg-panel px-3 py-1.5 max-md:sticky max-md:top-0 md:sticky md:top-0 md:h-dvh md:flex-col md:items-stretch md:gap-3 md:border-r md:border-b-0 md:p-3">
        <Brand />
        <button
          type="button"
          onClick={() => setOver("palette")}
          className="hidden min-h-9 items-center gap-2 rounded-md border border-line bg-sunken px-3 text-left text-faint hover:border-line-strong md:flex"
        >
          <Icon name="search" />
          <span className="flex-1 truncate">{t(palette.find)}</span>
          {PALETTE_KEYS.map((key) => (
            <Key key={key} text={key} />
          ))}
        </button>
        <div className="hidden min-h-0 flex-1 overflow-y-auto md:block">
          <SideNavigation />
        </div>
        <div className="flex flex-1 items-center justify-end gap-1 md:hidden">
          <IconButton label={t(palette.title)} icon="search" onClick={() => setOver("palette")} />
        </div>
        <AccountMenu me={me} onShortcuts={() => setOver("shortcuts")} />
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
      {over === "palette" && (
        <Suspense>
          <Palette onClose={() => setOver(undefined)} onShortcuts={() => setOver("shortcuts")} />
        </Suspense>
      )}
      <ShortcutsDialog open={over === "shortcuts"} onOpenChange={(open) => setOver(open ? "shortcuts" : undefined)} />
      <Questions />
    </div>
  );
}

function Brand() {
  return (
    <div className="flex items-center gap-2 text-lg font-semibold md:px-2 md:pt-1">
      <img src={`${BASE}/icon.svg`} alt="" width="22" height="22" />
      Toolcrib
    </div>
  );
}
