/** A server's entry as the form edits it, and back. */
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";

export interface Row {
  readonly name: string;
  readonly value: string;
}

export interface Draft {
  readonly id: string;
  readonly name: string;
  readonly kind: "command" | "url";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: readonly Row[];
  readonly url: string;
  readonly transport: "" | "http" | "sse";
  readonly headers: readonly Row[];
  readonly autoConnect: boolean;
  /** Keys that the form has no field for, as JSON text. */
  readonly other: string;
}

type Config = Readonly<Record<string, unknown>>;

const OWN_KEYS = new Set(["id", "name", "command", "args", "cwd", "env", "url", "transport", "headers", "autoConnect"]);

export const EMPTY_DRAFT: Draft = draftOf("", {});

export function draftOf(id: string, config: Config): Draft {
  const other = Object.fromEntries(Object.entries(config).filter(([key]) => !OWN_KEYS.has(key)));
  const { args, transport, autoConnect } = config;
  return {
    id,
    name: text(config["name"]),
    kind: typeof config["url"] === "string" ? "url" : "command",
    command: text(config["command"]),
    args: Array.isArray(args) ? args.map(String) : [],
    cwd: text(config["cwd"]),
    env: rowsOf(config["env"]),
    url: text(config["url"]),
    transport: transport === "http" || transport === "sse" ? transport : "",
    headers: rowsOf(config["headers"]),
    autoConnect: autoConnect !== false,
    other: Object.keys(other).length === 0 ? "" : JSON.stringify(other, undefined, 2),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function rowsOf(value: unknown): Row[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).map(([name, each]) => ({ name, value: String(each) }));
}

/** Throws a SyntaxError for other keys that are not a JSON object. */
export function configOf(draft: Draft): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  if (draft.name.trim() !== "") config["name"] = draft.name.trim();
  if (draft.kind === "command") {
    config["command"] = draft.command.trim();
    if (draft.args.length > 0) config["args"] = [...draft.args];
    if (draft.cwd.trim() !== "") config["cwd"] = draft.cwd.trim();
    if (hasRows(draft.env)) config["env"] = recordOf(draft.env);
  } else {
    config["url"] = draft.url.trim();
    if (draft.transport !== "") config["transport"] = draft.transport;
    if (hasRows(draft.headers)) config["headers"] = recordOf(draft.headers);
  }
  if (!draft.autoConnect) config["autoConnect"] = false;
  return { ...config, ...otherOf(draft.other) };
}

function hasRows(rows: readonly Row[]): boolean {
  return rows.some((row) => row.name.trim() !== "");
}

function recordOf(rows: readonly Row[]): Record<string, string> {
  return Object.fromEntries(rows.filter((row) => row.name.trim() !== "").map((row) => [row.name.trim(), row.value]));
}

function otherOf(json: string): Config {
  if (json.trim() === "") return {};
  const value: unknown = JSON.parse(json);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SyntaxError("Not a JSON object.");
  return { ...value };
}

/**
 * What PATCH needs to turn one entry into the other: changed keys, and null for those that are gone. The hub merges objects
 * such as `env` key by key, so of these too only changed keys are sent: the others may be masked here.
 */
export function updatesOf(before: Config, after: Config): Record<string, unknown> {
  const updates = changesBetween(before, after, (key, old, next) =>
    isConfig(old) && isConfig(next) && !isOtherAuth(key, old, next) ? changesBetween(old, next) : next,
  );
  delete updates["id"];
  return updates;
}

function changesBetween(
  before: Config,
  after: Config,
  sent: (key: string, old: unknown, next: unknown) => unknown = (_, __, next) => next,
): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const [key, next] of Object.entries(after))
    if (JSON.stringify(before[key]) !== JSON.stringify(next)) changes[key] = sent(key, before[key], next);
  for (const key of Object.keys(before)) if (!(key in after)) changes[key] = null;
  return changes;
}

function isConfig(value: unknown): value is Config {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The hub replaces a login of another type as a whole. */
function isOtherAuth(key: string, old: Config, next: Config): boolean {
  return key === "auth" && old["type"] !== next["type"];
}

/** The mask that the hub shows instead of a secret. */
export const MASK = "[redacted]";

/** Where a mask would be sent as if it were the value, such as under a new name; undefined if nowhere. */
export function maskProblem(before: Config, after: Config): string | undefined {
  const masked = Object.entries(updatesOf(before, after)).find(([, value]) => JSON.stringify(value)?.includes(MASK));
  return masked && t(serverWords.hiddenSecret, { key: masked[0] });
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}$/;

/** Problems that prevent the draft from being sent, by field. */
export function draftProblems(draft: Draft): Readonly<Partial<Record<keyof Draft, string>>> {
  const problems: Partial<Record<keyof Draft, string>> = {};
  if (!ID.test(draft.id)) problems.id = t(serverWords.badId);
  else if (draft.id === "local") problems.id = t(serverWords.localReserved);
  if (draft.kind === "command" && draft.command.trim() === "") problems.command = t(serverWords.noCommand);
  if (draft.kind === "url" && !/^https?:\/\/\S+$/.test(draft.url.trim())) problems.url = t(serverWords.badUrl);
  try {
    otherOf(draft.other);
  } catch {
    problems.other = t(serverWords.notObject);
  }
  return problems;
}
