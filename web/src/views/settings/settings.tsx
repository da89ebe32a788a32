import { getRouteApi } from "@tanstack/react-router";
import { Page } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
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
    <Page title="Settings" description="The current config of the hub. Changes of its file are applied automatically.">
      <div className="rounded-lg border border-line bg-panel">
        <Tabs
          label="Settings"
          value={search.tab ?? "config"}
          onChange={(tab) => void navigate({ search: { tab } })}
          tabs={[
            {
              id: "config",
              label: "Config",
              content: (
                <Loaded query={query} skeleton={<Skeleton lines={10} label="Loading the config" />}>
                  {(config) => <ConfigTab config={config} q={search.q} origin={search.origin} onChange={change} />}
                </Loaded>
              ),
            },
            {
              id: "policy",
              label: "Policy",
              content: (
                <PolicyTab name={search.name} role={search.role} roles={query.data?.roles ?? []} onChange={change} />
              ),
            },
            { id: "roles", label: t(rules.roles), count: query.data?.roles.length, content: <RolesTab /> },
            { id: "tokens", label: t(rules.tokens), count: query.data?.tokens.length, content: <TokensTab /> },
            {
              id: "clients",
              label: "Clients",
              content: <ClientsTab client={search.client} onClient={(client) => change({ client })} />,
            },
            { id: "about", label: "About", content: <AboutTab /> },
          ]}
        />
      </div>
    </Page>
  );
}
