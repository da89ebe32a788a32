/** Settings of this page and browser, the current login, and the logout. */
import { useState } from "react";
import { logout } from "../../api.ts";
import { BASE } from "../../base.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/fields.tsx";
import { KeyValues } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { LANGUAGES, t } from "../../messages/messages.ts";
import { settings } from "../../messages/settings.ts";
import { chooseLanguage, chosenLanguage } from "../../shell/language.ts";
import { useThemeChoice } from "../../shell/theme.ts";
import { useOperation } from "../../state/queries.ts";

const THEMES = [
  ["system", "Same as the system"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;

export function AboutTab() {
  const me = useOperation("me", {});
  return (
    <div className="flex flex-col gap-6 p-4">
      <section>
        <h2 className="mb-2 font-semibold">Theme</h2>
        <ThemeChoice />
      </section>
      <section>
        <h2 className="mb-2 font-semibold">{t(settings.language)}</h2>
        <Select
          aria-label={t(settings.language)}
          value={chosenLanguage() ?? "system"}
          options={[["system", t(settings.browserLanguage)], ...Object.entries(LANGUAGES)]}
          onChange={chooseLanguage}
        />
      </section>
      <section>
        <h2 className="mb-2 font-semibold">Login</h2>
        <Loaded query={me} skeleton={<Skeleton lines={3} />}>
          {({ user, role, owner, scopes, version, url }) => (
            <KeyValues
              rows={[
                ["User", user ?? (owner ? "the hub's user" : "unknown")],
                ["Role", role ?? "none"],
                [
                  "May",
                  <span className="flex flex-wrap gap-1">
                    {scopes.map((scope) => (
                      <Badge key={scope}>{scope}</Badge>
                    ))}
                  </span>,
                ],
                ["Hub", <span className="font-mono text-sm break-all">{url}</span>],
                ["Version", `Toolcrib ${version}`],
              ]}
            />
          )}
        </Loaded>
        <div className="mt-3">
          <LogoutButton />
        </div>
      </section>
      <section>
        <h2 className="mb-2 font-semibold">For programs</h2>
        <ul className="flex flex-col gap-1">
          <li>
            <a href={`${BASE}/api/docs`} className="text-accent underline">
              Documentation of the API
            </a>
          </li>
          <li>
            <a href={`${BASE}/api/v1/openapi.json`} className="text-accent underline">
              OpenAPI document
            </a>
          </li>
        </ul>
      </section>
    </div>
  );
}

function ThemeChoice() {
  const [choice, choose] = useThemeChoice();
  return (
    <div role="radiogroup" aria-label="Theme" className="flex flex-wrap gap-x-5 gap-y-2">
      {THEMES.map(([value, label]) => (
        <label key={value} className="inline-flex items-center gap-2">
          <input
            type="radio"
            name="theme"
            checked={choice === value}
            onChange={() => choose(value)}
            className="size-4 accent-accent"
          />
          {label}
        </label>
      ))}
    </div>
  );
}

function LogoutButton() {
  const [busy, setBusy] = useState(false);
  const leave = async (): Promise<void> => {
    setBusy(true);
    try {
      await logout();
      // Nothing that was read as an operator stays in the page.
      location.assign(`${BASE}/`);
    } catch (error) {
      setBusy(false);
      toastError(error);
    }
  };
  return (
    <Button icon="lock" busy={busy} onClick={() => void leave()}>
      Log out
    </Button>
  );
}
