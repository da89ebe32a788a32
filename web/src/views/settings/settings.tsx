import { getRouteApi } from "@tanstack/react-router";
import { Page } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { settings } from "../../messages/settings.ts";
import { shell } from "../../messages/shell.ts";
import { useOperation } from "../../state/queries.ts";
import { ClientsTab } from "./clients-tab.tsx";
import { ConfigTab } from "./config-tab.tsx";
import { AboutTab } from "./about-tab.tsx";
import { PolicyTab } from "./policy-tab.tsx";
import { RolesTab } from "./roles-tab.tsx";
import { TokensTab } from "./tokens-tab.tsx";

const route = getRouteApi("/settings");

export function SettingsView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useOperation("getConfig", {});
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  return (
    <Page title={t(shell.settings)} description={t(settings.about)}>
      <div className="rounded-lg border border-line bg-panel">
        <Tabs
          label={t(shell.settings)}
          value={search.tab ?? "config"}
          onChange={(tab) => void navigate({ search: { tab } })}
          tabs={[
            {
              id: "config",
              label: t(settings.config),
              content: (
                <Loaded query={query} skeleton={<Skeleton lines={10} label={t(settings.loadingConfig)} />}>
                  {(config) => <ConfigTab config={config} q={search.q} origin={search.origin} onChange={change} />}
                </Loaded>
              ),
            },
            {
              id: "policy",
              label: t(settings.policy),
              content: (
                <PolicyTab name={search.name} role={search.role} roles={query.data?.roles ?? []} onChange={change} />
              ),
            },
            { id: "roles", label: t(rules.roles), count: query.data?.roles.length, content: <RolesTab /> },
            { id: "tokens", label: t(rules.tokens), count: query.data?.tokens.length, content: <TokensTab /> },
            {
              id: "clients",
              label: t(settings.clients),
              content: <ClientsTab client={search.client} onClient={(client) => change({ client })} />,
            },
            { id: "about", label: t(settings.aboutTab), content: <AboutTab /> },
          ]}
        />
      </div>
    </Page>
  );
}
