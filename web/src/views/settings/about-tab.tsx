/** Settings of this page and browser, the current login, and the logout. */
import { BASE } from "../../base.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/fields.tsx";
import { KeyValues } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { LANGUAGES, t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { settings } from "../../messages/settings.ts";
import { shell } from "../../messages/shell.ts";
import { logOut, ThemeChoice } from "../../shell/account-menu.tsx";
import { chooseLanguage, chosenLanguage } from "../../shell/language.ts";
import { useOperation } from "../../state/queries.ts";

export function AboutTab() {
  const me = useOperation("me", {});
  return (
    <div className="flex flex-col gap-6 p-4">
      <section>
        <h2 className="mb-2 font-semibold">{t(shell.theme)}</h2>
        <div className="max-w-72">
          <ThemeChoice />
        </div>
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
        <h2 className="mb-2 font-semibold">{t(settings.login)}</h2>
        <Loaded query={me} skeleton={<Skeleton lines={3} />}>
          {({ user, role, owner, scopes, version, url }) => (
            <KeyValues
              rows={[
                [t(rules.user), user ?? t(owner ? settings.hubUser : settings.unknownUser)],
                [t(rules.role), role ?? t(settings.noRole)],
                [
                  t(rules.may),
                  <span className="flex flex-wrap gap-1">
                    {scopes.map((scope) => (
                      <Badge key={scope}>{scope}</Badge>
                    ))}
                  </span>,
                ],
                [t(settings.hub), <span className="font-mono text-sm break-all">{url}</span>],
                [t(settings.version), `Toolcrib ${version}`],
              ]}
            />
          )}
        </Loaded>
        <div className="mt-3">
          <Button icon="lock" onClick={() => void logOut()}>
            {t(shell.logOut)}
          </Button>
        </div>
      </section>
      <section>
        <h2 className="mb-2 font-semibold">{t(settings.forPrograms)}</h2>
        <ul className="flex flex-col gap-1">
          <li>
            <a href={`${BASE}/api/docs`} className="text-accent underline">
              {t(settings.apiDocs)}
            </a>
          </li>
          <li>
            <a href={`${BASE}/api/v1/openapi.json`} className="text-accent underline">
              {t(settings.openapi)}
            </a>
          </li>
        </ul>
      </section>
    </div>
  );
}
