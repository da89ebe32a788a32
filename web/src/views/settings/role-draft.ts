/** The settings of a role as the form edits them. Keys that the form does not know stay as they are. */
import type { RoleInfo } from "../../../../src/contract/change-schemas.ts";

export interface RoleDraft {
  readonly servers: readonly string[];
  readonly views: readonly string[];
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

type Settings = Readonly<Record<string, unknown>>;

export function draftOf(role: Pick<RoleInfo, "settings"> | undefined): RoleDraft {
  const settings: Settings = role?.settings ?? {};
  const tools = objectIn(settings, "tools");
  return {
    servers: textsIn(settings, "servers"),
    views: textsIn(settings, "views"),
    allow: textsIn(tools, "allow"),
    ask: textsIn(tools, "ask"),
    deny: textsIn(tools, "deny"),
  };
}

/** What `changeConfig` takes: null removes a key. */
export function settingsOf(draft: RoleDraft, role: Pick<RoleInfo, "settings"> | undefined): Record<string, unknown> {
  const before: Settings = role?.settings ?? {};
  const { allow, ask, deny } = draft;
  const { allow: _allow, ask: _ask, deny: _deny, ...others } = objectIn(before, "tools");
  const tools = { ...others, ...given({ allow, ask, deny }) };
  const all = { servers: draft.servers, views: draft.views };
  const removed = Object.fromEntries(
    Object.entries({ ...all, tools: Object.keys(tools) })
      .filter(([key, value]) => value.length === 0 && Object.hasOwn(before, key))
      .map(([key]) => [key, null]),
  );
  return { ...given(all), ...(Object.keys(tools).length === 0 ? {} : { tools }), ...removed };
}

function given(lists: Readonly<Record<string, readonly string[]>>): Record<string, readonly string[]> {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}

function objectIn(value: Settings, key: string): Settings {
  const found = value[key];
  return typeof found === "object" && found !== null && !Array.isArray(found) ? { ...found } : {};
}

function textsIn(value: Settings, key: string): string[] {
  const found = value[key];
  return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
}
