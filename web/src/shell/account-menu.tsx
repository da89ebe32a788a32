/** Who is logged in, and the settings of this browser: theme, language, shortcuts, logout. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Me } from "../../../src/contract/settings-schemas.ts";
import { logout } from "../api.ts";
import { BASE } from "../base.ts";
import { Select } from "../components/fields.tsx";
import { Icon, type IconName } from "../components/icon.tsx";
import { toastError } from "../components/toast.tsx";
import { LANGUAGES, t } from "../messages/messages.ts";
import { palette } from "../messages/palette.ts";
import { settings } from "../messages/settings.ts";
import { shell } from "../messages/shell.ts";
import { useConnectionStatus } from "../state/live.ts";
import { chooseLanguage, chosenLanguage } from "./language.ts";
import { Key } from "./shortcuts.tsx";
import { useThemeChoice } from "./theme.ts";

const THEMES = [
  ["system", shell.themeSystem],
  ["light", shell.themeLight],
  ["dark", shell.themeDark],
] as const;

interface AccountMenuProps {
  readonly me: Me;
  readonly onShortcuts: () => void;
}

export function AccountMenu({ me, onShortcuts }: AccountMenuProps) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return undefined;
    const closeOutside = ({ target }: Event): void => {
      if (target instanceof Node && box.current?.contains(target) !== true) setOpen(false);
    };
    document.addEventListener("pointerdown", closeOutside);
    document.addEventListener("focusin", closeOutside);
    return () => {
      document.removeEventListener("pointerdown", closeOutside);
      document.removeEventListener("focusin", closeOutside);
    };
  }, [open]);
  const status = useConnectionStatus();
  const words = { open: shell.live, connecting: shell.connecting, lost: shell.offline, closed: shell.offline }[status];
  const name = me.user ?? t(shell.operator);
  return (
    <div
      ref={box}
      className="relative"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.preventDefault();
        event.nativeEvent.stopImmediatePropagation();
        setOpen(false);
        button.current?.focus();
      }}
    >
      <button
        ref={button}
        type="button"
        aria-expanded={open}
        aria-controls={`${id}-menu`}
        title={t(shell.account)}
        onClick={() => setOpen(!open)}
        className="flex min-h-10 w-full items-center gap-2 rounded-md p-1 text-left hover:bg-hover md:px-2"
      >
        <span
          aria-hidden="true"
          className="flex size-7 shrink-0 items-center justify-center rounded-full bg-accent-wash text-sm font-semibold text-accent uppercase"
        >
          {[...name][0]}
        </span>
        <span className="min-w-0 flex-1 max-md:sr-only">
          <span className="block truncate leading-tight">{name}</span>
          <span className="flex items-center gap-1.5 text-xs leading-tight text-faint">
            <span
              aria-hidden="true"
              className={`size-1.5 rounded-full ${status === "open" ? "bg-ok" : "border border-warn"}`}
            />
            {t(words)}
          </span>
        </span>
        <Icon name="down" className="size-4 text-faint max-md:hidden md:rotate-180" />
      </button>
      {open && (
        <div
          id={`${id}-menu`}
          role="group"
          aria-label={t(shell.account)}
          className="absolute top-full right-0 z-40 mt-1 flex w-72 flex-col gap-3 rounded-lg border border-line bg-panel p-3 shadow-float md:top-auto md:right-auto md:bottom-full md:left-0 md:mb-1"
        >
          <div className="min-w-0">
            <p className="truncate font-medium">{name}</p>
            <p className="truncate text-sm text-soft">{me.role ?? me.scopes.at(-1)}</p>
            <p className="truncate text-sm text-faint">Toolcrib {me.version}</p>
          </div>
          <ThemeChoice />
          <label className="flex items-center justify-between gap-3">
            <span className="text-soft">{t(settings.language)}</span>
            <Select
              className="min-w-0 flex-1"
              value={chosenLanguage() ?? "system"}
              options={[["system", t(settings.browserLanguage)], ...Object.entries(LANGUAGES)]}
              onChange={chooseLanguage}
            />
          </label>
          <div className="-mx-3 -mb-3 flex flex-col border-t border-line p-1.5">
            <MenuButton
              icon="help"
              onClick={() => {
                setOpen(false);
                onShortcuts();
              }}
            >
              {t(palette.shortcuts)}
              <span className="ml-auto">
                <Key text="?" />
              </span>
            </MenuButton>
            <Link
              to="/settings"
              search={{ tab: "about" }}
              onClick={() => setOpen(false)}
              className="flex min-h-9 items-center gap-2 rounded-md px-2 text-soft hover:bg-hover hover:text-ink"
            >
              <Icon name="settings" />
              {t(shell.settings)}
            </Link>
            <MenuButton icon="lock" onClick={() => void logOut()}>
              {t(shell.logOut)}
            </MenuButton>
          </div>
        </div>
      )}
    </div>
  );
}

export async function logOut(): Promise<void> {
  try {
    await logout();
    // Nothing that was read as an operator stays in the page.
    location.assign(`${BASE}/`);
  } catch (error) {
    toastError(error);
  }
}

interface MenuButtonProps {
  readonly icon: IconName;
  readonly onClick: () => void;
  readonly children: ReactNode;
}

function MenuButton({ icon, onClick, children }: MenuButtonProps) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="flex min-h-9 items-center gap-2 rounded-md px-2 text-left text-soft hover:bg-hover hover:text-ink"
    >
      <Icon name={icon} />
      {children}
    </button>
  );
}

export function ThemeChoice() {
  const name = useId();
  const [choice, choose] = useThemeChoice();
  return (
    <div role="radiogroup" aria-label={t(shell.theme)} className="grid grid-cols-3 gap-1 rounded-md bg-sunken p-1">
      {THEMES.map(([value, label]) => (
        <label
          key={value}
          className="flex min-h-7 cursor-pointer items-center justify-center rounded-sm text-sm text-soft has-checked:bg-panel has-checked:font-medium has-checked:text-ink has-checked:shadow-sm has-focus-visible:outline-2 has-focus-visible:outline-accent"
        >
          <input
            type="radio"
            name={name}
            checked={choice === value}
            onChange={() => choose(value)}
            className="sr-only"
          />
          {t(label)}
        </label>
      ))}
    </div>
  );
}
