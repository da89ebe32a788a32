/** The table of views. Each is loaded when it is first opened. */
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
} from "@tanstack/react-router";
import type { Me } from "../../src/contract/settings-schemas.ts";
import { BASE } from "./base.ts";
import { Empty, FailureBox } from "./components/states.tsx";
import { t } from "./messages/messages.ts";
import { shell } from "./messages/shell.ts";
import { Shell } from "./shell/shell.tsx";

interface Context {
  readonly me: Me;
}

type Search = Readonly<Record<string, unknown>>;

/** Only texts that say something stay in the address. */
function texts<Key extends string>(search: Search, keys: readonly Key[]): Partial<Record<Key, string>> {
  const found: Partial<Record<Key, string>> = {};
  for (const key of keys) {
    const value = search[key];
    if (typeof value === "string" && value !== "") found[key] = value;
    else if (typeof value === "number" || typeof value === "boolean") found[key] = String(value);
  }
  return found;
}

const root = createRootRouteWithContext<Context>()({
  component: function Root() {
    const { me } = root.useRouteContext();
    return <Shell me={me} />;
  },
  notFoundComponent: () => (
    <Empty
      title={t(shell.notFound)}
      action={
        <Link to="/" className="text-accent underline">
          {t(shell.goToOverview)}
        </Link>
      }
    />
  ),
});

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: Search) => texts(search, ["range", "by", "of"]),
  component: lazyRouteComponent(() => import("./views/overview/overview.tsx"), "OverviewView"),
});

const servers = createRoute({
  getParentRoute: () => root,
  path: "/servers",
  validateSearch: (search: Search) => texts(search, ["q", "state", "server", "tab", "add"]),
  component: lazyRouteComponent(() => import("./views/servers/servers.tsx"), "ServersView"),
});

const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  validateSearch: (search: Search) => texts(search, ["q", "server", "pin", "tool", "role"]),
  component: lazyRouteComponent(() => import("./views/tools/tools.tsx"), "ToolsView"),
});

const resources = createRoute({
  getParentRoute: () => root,
  path: "/resources",
  validateSearch: (search: Search) => texts(search, ["q", "server", "uri"]),
  component: lazyRouteComponent(() => import("./views/resources/resources.tsx"), "ResourcesView"),
});

const prompts = createRoute({
  getParentRoute: () => root,
  path: "/prompts",
  validateSearch: (search: Search) => texts(search, ["q", "server", "prompt"]),
  component: lazyRouteComponent(() => import("./views/prompts/prompts.tsx"), "PromptsView"),
});

const logins = createRoute({
  getParentRoute: () => root,
  path: "/logins",
  validateSearch: (search: Search) => texts(search, ["server"]),
  component: lazyRouteComponent(() => import("./views/logins/logins.tsx"), "LoginsView"),
});

const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  component: lazyRouteComponent(() => import("./views/approvals/approvals.tsx"), "ApprovalsView"),
});

const skills = createRoute({
  getParentRoute: () => root,
  path: "/skills",
  validateSearch: (search: Search) => texts(search, ["q", "kind", "source", "from", "skill", "tab", "scan"]),
  component: lazyRouteComponent(() => import("./views/skills/skills.tsx"), "SkillsView"),
});

const sessions = createRoute({
  getParentRoute: () => root,
  path: "/sessions",
  validateSearch: (search: Search) => texts(search, ["door", "state", "session", "tab"]),
  component: lazyRouteComponent(() => import("./views/sessions/sessions.tsx"), "SessionsView"),
});

const traffic = createRoute({
  getParentRoute: () => root,
  path: "/traffic",
  validateSearch: (search: Search) => texts(search, ["q", "server", "client", "role", "outcome", "call"]),
  component: lazyRouteComponent(() => import("./views/traffic/traffic.tsx"), "TrafficView"),
});

const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: (search: Search) =>
    texts(search, [
      "q",
      "type",
      "server",
      "name",
      "session",
      "user",
      "client",
      "door",
      "outcome",
      "callId",
      "since",
      "until",
      "entry",
    ]),
  component: lazyRouteComponent(() => import("./views/audit/audit.tsx"), "AuditView"),
});

const help = createRoute({
  getParentRoute: () => root,
  path: "/help",
  validateSearch: (search: Search) => texts(search, ["page", "at"]),
  component: lazyRouteComponent(() => import("./views/help/help.tsx"), "HelpView"),
});

const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: (search: Search) => texts(search, ["tab", "q", "origin", "name", "role", "client"]),
  component: lazyRouteComponent(() => import("./views/settings/settings.tsx"), "SettingsView"),
});

export function createPageRouter(me: Me) {
  return createRouter({
    routeTree: root.addChildren([
      overview,
      servers,
      tools,
      resources,
      prompts,
      logins,
      approvals,
      skills,
      sessions,
      traffic,
      audit,
      settings,
      help,
    ]),
    context: { me },
    basepath: BASE === "" ? "/" : BASE,
    defaultPreload: "intent",
    defaultErrorComponent: ({ error, reset }) => (
      <div className="p-4">
        <FailureBox error={error} onRetry={reset} />
      </div>
    ),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPageRouter>;
  }
}
