/** The views, in the order of the navigation, with the key that leads to each after `g`. */
import type { IconName } from "../components/icon.tsx";
import type { Message } from "../messages/messages.ts";
import { resources } from "../messages/resources.ts";
import { shell } from "../messages/shell.ts";

export const PLACES = [
  { to: "/", label: shell.overview, icon: "overview", key: "o" },
  { to: "/servers", label: shell.servers, icon: "servers", key: "s" },
  { to: "/tools", label: shell.tools, icon: "tools", key: "t" },
  { to: "/approvals", label: shell.approvals, icon: "approvals", key: "a" },
  { to: "/resources", label: resources.resources, icon: "resources", key: "r" },
  { to: "/prompts", label: resources.prompts, icon: "prompts", key: "p" },
  { to: "/skills", label: shell.skills, icon: "skills", key: "k" },
  { to: "/sessions", label: shell.sessions, icon: "sessions", key: "e" },
  { to: "/traffic", label: shell.traffic, icon: "traffic", key: "l" },
  { to: "/audit", label: shell.audit, icon: "audit", key: "u" },
  { to: "/settings", label: shell.settings, icon: "settings", key: "c" },
  { to: "/help", label: shell.help, icon: "help", key: "h" },
] as const satisfies readonly {
  readonly to: string;
  readonly label: Message;
  readonly icon: IconName;
  readonly key: string;
}[];
