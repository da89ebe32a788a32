/**
 * Changes of the config by its operator: rules, roles, servers and tokens. Each is worked out as a diff with its effect on clients
 * and roles first, and written only if the file is still the one that the diff was made from.
 */
import { createHash, randomBytes } from "node:crypto";
import { nearMatches } from "../../base/near-matches.ts";
import { hidingLayerOf } from "../../catalog/overrides.ts";
import { ConfigDocument, invalidConfigError, renderDiagnostic } from "../../config/config-document.ts";
import { changedMeanwhile, planEdit, takeBack, writePlanned } from "../../config/edit-config.ts";
import { homeConfigFile } from "../../config/find-config.ts";
import { diffLines } from "../../config/masked-diff.ts";
import type { ConfigChange, PlannedChange } from "../../contract/change-schemas.ts";
import { appendItem, removeItem, removeProperty, setProperty } from "../../files/edit/json-edit.ts";
import type { ToolCapability } from "../../model/capability.ts";
import type { Decision } from "../../model/decision.ts";
import { asToolcribError, systemErrorCode, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Diagnostic, LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ToolRules } from "../../model/tool-rules.ts";
import type { Matchable } from "../../policy/pattern.ts";
import { withVerdict } from "../../policy/rule-edits.ts";
import { Session } from "../../sessions/session.ts";
import type { HubSessions } from "../create/hub-sessions.ts";
import { type CurrentWiring, type HubParts, type Wiring, wireHub } from "../create/wiring.ts";
import { mergeEntry, refuseMask, refuseOtherId } from "../servers/server-entry.ts";
import type { ServerRegistry } from "../servers/server-registry.ts";
import { STORE_DIALECT } from "../servers/stored-servers.ts";
import type { Reloader } from "./reloader.ts";

interface ConfigChangesOptions {
  readonly parts: HubParts;
  readonly current: CurrentWiring;
  readonly reloader: Reloader;
  readonly servers: ServerRegistry;
  readonly sessions: HubSessions;
  readonly home: string;
}

/** A change of a server in the store; null removes it. */
type StoreChanges = Map<string, JsonObject | null>;

interface Plan {
  readonly file: string;
  readonly before: string | null;
  readonly after: string;
  /** A file that is not there is made only for a change of its own. */
  readonly changesFile: boolean;
  readonly stored: StoreChanges;
  /** Etags of the servers in the store. */
  readonly tags: ReadonlyMap<string, string>;
  readonly token: string | undefined;
  readonly shown: Omit<PlannedChange, "saved" | "token">;
}

export class ConfigChanges {
  readonly #options: ConfigChangesOptions;

  constructor(options: ConfigChangesOptions) {
    this.#options = options;
  }

  /** The diff of the changes and its effect. Writes nothing; rejects with `invalid_config` if the config would not load. */
  async preview(changes: readonly ConfigChange[]): Promise<PlannedChange> {
    return { ...(await this.#plan(changes)).shown, saved: false };
  }

  /**
   * Writes the changes and applies them.
   * @param etag Of the preview that was looked at.
   */
  async write(changes: readonly ConfigChange[], etag: string): Promise<PlannedChange> {
    const plan = await this.#plan(changes);
    const { file, before, after, stored, tags, token, shown } = plan;
    if (etag !== shown.etag) throw changedMeanwhile(file);
    const { servers: registry, reloader, current } = this.#options;
    const { config } = current;
    // The others are joined to it again.
    const servers = config.servers.filter(({ origin }) => ![STORE_DIALECT, "skill"].includes(origin.dialect));
    if (plan.changesFile) {
      await writePlanned(file, { before, after }).catch((error: unknown) => {
        throw error instanceof ToolcribError ? error : notWritable(file, error);
      });
      // What loads may still not be applicable, such as a plugin that fails.
      await orRestore(file, reloader.reload(), () => takeBack(file, { before, after }));
    }
    const inStore = [...stored].map(([id, updates]) => {
      const match = tags.get(id);
      return { id, updates, ...(match === undefined ? {} : { ifMatch: match }) };
    });
    if (inStore.length > 0) {
      await orRestore(file, registry.changeAll(inStore), async () => {
        if (!plan.changesFile) return;
        await takeBack(file, { before, after });
        // Not from the file, of which there may be none again.
        await reloader.reload({ ...config, servers });
      });
    }
    return { ...shown, saved: true, ...(token === undefined ? {} : { token }) };
  }

  async #plan(changes: readonly ConfigChange[]): Promise<Plan> {
    const { current, servers, reloader } = this.#options;
    const { config } = current;
    if (config.inCode) {
      throw new ToolcribError("conflict", "The config of this hub was given in code, and is in no file.", {
        hint: "Change it in the program that started the hub.",
      });
    }
    const file = config.file ?? homeConfigFile(this.#options.home);
    const stored: StoreChanges = new Map();
    const tokens = changes.filter(({ kind }) => kind === "token").length;
    if (tokens > 1) throw new ToolcribError("invalid_arguments", "Only one token is made at a time.");
    const token = tokens === 0 ? undefined : newToken();
    let changesFile = false;
    const { before, after } = await planEdit(file, (text) => {
      let draft = text;
      for (const change of changes) draft = this.#applied(draft, file, change, stored, token);
      changesFile = draft !== text;
      return draft;
    });
    const diffs = changesFile ? [{ where: file, lines: diffLines(before ?? "", after) }] : [];
    const tags = new Map<string, string>();
    const specs = new Map<string, ServerSpec | undefined>();
    for (const [id, updates] of stored) {
      const found = await servers.preview(id, updates ?? {});
      const lines = diffLines(entryText(found.before), updates === null ? "" : entryText(found.after));
      if (lines.length > 0) diffs.push({ where: storePlace(config, id), lines });
      tags.set(id, found.etag);
      specs.set(id, updates === null ? undefined : found.spec);
    }
    const loaded = changesFile ? await reloader.preview(file, after) : config;
    const changed = changes.flatMap((change) => (change.kind === "server" ? change.serverId : []));
    const wrong = [...newEntryProblems(config, loaded), ...changed.flatMap((id) => loaded.unusable?.get(id) ?? [])];
    if (wrong.length > 0) throw invalidConfigError([...new Set(wrong)]);
    const candidate = {
      ...loaded,
      servers: loaded.servers.flatMap((spec) => (specs.has(spec.id) ? (specs.get(spec.id) ?? []) : [spec])),
    };
    const next = wireHub({ ...this.#options.parts, warn: () => {} }, candidate);
    const known = new Set(config.warnings.map(({ code, path }) => `${code} ${path}`));
    const warnings = candidate.warnings.filter(({ code, path }) => !known.has(`${code} ${path}`));
    const unknown = warnings.filter(({ code }) => code === "unknown_key");
    if (unknown.length > 0) throw invalidConfigError(unknown);
    const shown = {
      etag: createHash("sha256")
        .update(JSON.stringify([before, ...tags]))
        .digest("hex")
        .slice(0, 32),
      diffs,
      effect: this.#effect(next),
      unmet: this.#unmet(changes, next),
      notes: [...accessNotes(config, candidate), ...this.#nameless(changes), ...warnings.map(renderDiagnostic)],
    };
    return { file, before, after, changesFile, stored, tags, token, shown };
  }

  #applied(text: string, file: string, change: ConfigChange, stored: StoreChanges, token: string | undefined): string {
    switch (change.kind) {
      case "rule":
        return change.patterns.reduce((draft, pattern) => this.#withRule(draft, file, change, pattern, stored), text);
      case "role":
        return this.#withRole(text, file, change.role, change.settings);
      case "server":
        return this.#withServer(text, file, change.serverId, change.updates, stored);
      case "token":
        return withToken(text, file, change, token ?? "");
      case "revokeToken":
        return withoutToken(text, file, change.name);
    }
  }

  #withRule(
    text: string,
    file: string,
    { verdict, role, serverId }: Extract<ConfigChange, { kind: "rule" }>,
    pattern: string,
    stored: StoreChanges,
  ): string {
    const tool = this.#tool(pattern);
    if (serverId !== undefined) return this.#withServerRule(text, file, serverId, { pattern, verdict, tool }, stored);
    if (role !== undefined) this.#assertOwnRole(text, file, role);
    const path = role === undefined ? ["tools"] : ["roles", role, "tools"];
    const rules = rulesAt(file, text, path);
    const changed = withVerdict(rules, pattern, verdict, tool && this.#matchable(tool));
    const draft = withLists(text, path, rules, changed);
    // Rules of one role must not widen what others may do.
    if (role !== undefined || tool === undefined || verdict === "deny" || verdict === "none") return draft;
    const spec = this.#spec(tool.origin.source);
    const isHeldBack = spec?.tools !== undefined && this.#isDecidedByServer(tool, verdict);
    if (spec === undefined || !isHeldBack) return draft;
    return this.#withServerRule(draft, file, spec.id, { pattern, verdict, tool }, stored);
  }

  #isDecidedByServer(tool: ToolCapability, verdict: "allow" | "ask"): boolean {
    const session = ownerSession();
    const { steps } = this.#options.current.wiring.path.access.explain(session, tool);
    return steps.some(
      ({ level, verdict: said, rule }) =>
        level === "server" &&
        rule !== null &&
        rule.list !== "roles" &&
        (said === "deny" || (said === "ask" && verdict === "allow")),
    );
  }

  #withServerRule(
    text: string,
    file: string,
    id: string,
    {
      pattern,
      verdict,
      tool,
    }: { pattern: string; verdict: "allow" | "ask" | "deny" | "none"; tool: ToolCapability | undefined },
    stored: StoreChanges,
  ): string {
    const spec = this.#requireServer(id);
    const subject = tool && { ...this.#matchable(tool), names: [tool.origin.name, ...this.#matchable(tool).names] };
    if (spec.origin.dialect !== STORE_DIALECT) {
      const path = [...this.#serverPath(text, file, spec), "tools"];
      const rules = rulesAt(file, text, path);
      return withLists(text, path, rules, withVerdict(rules, pattern, verdict, subject));
    }
    const updates = stored.get(id) ?? {};
    const begun = isJsonObject(updates["tools"]) ? updates["tools"] : {};
    const rules: ToolRules = { ...spec.tools, ...begun };
    const { allow, ask = [], deny = [] } = withVerdict(rules, pattern, verdict, subject);
    const orNull = (list: readonly string[]): readonly string[] | null => (list.length === 0 ? null : list);
    stored.set(id, {
      ...updates,
      tools: { ...(allow === undefined ? {} : { allow }), ask: orNull(ask), deny: orNull(deny) },
    });
    return text;
  }

  #withRole(text: string, file: string, role: string, settings: JsonObject | null): string {
    this.#assertOwnRole(text, file, role);
    const path = ["roles", role];
    if (settings === null) {
      if (!hasPath(file, text, path))
        throw new ToolcribError("not_found", `${file} has no role ${JSON.stringify(role)}.`);
      return removeProperty(text, path);
    }
    refuseMask(settings);
    const draft = hasPath(file, text, path) ? text : setProperty(text, path, {});
    return withObject(draft, file, path, settings);
  }

  #assertOwnRole(text: string, file: string, role: string): void {
    const { config, project } = this.#options.current.config;
    if (hasPath(file, text, ["roles", role]) || !Object.hasOwn(config.roles, role)) return;
    const where = project?.roles.includes(role) === true ? project.file : "an imported file";
    throw new ToolcribError(
      "conflict",
      `The role ${JSON.stringify(role)} comes from ${where}, which is not edited here.`,
      {
        hint: "Change it there. A project's config has to be trusted again afterwards.",
      },
    );
  }

  #withServer(text: string, file: string, id: string, updates: JsonObject | null, stored: StoreChanges): string {
    const spec = this.#requireServer(id);
    if (spec.origin.dialect === STORE_DIALECT) {
      stored.set(id, updates === null ? null : { ...stored.get(id), ...updates });
      return text;
    }
    const path = this.#serverPath(text, file, spec);
    if (updates === null) return removeProperty(text, path);
    refuseMask(updates);
    refuseOtherId(id, updates);
    const before = valueAt(file, text, path);
    const { id: _id, ...given } = updates;
    const after = mergeEntry(before, given);
    // A file that is shared with another program keeps that program's word.
    if (Object.hasOwn(before, "disabled") && typeof given["enabled"] === "boolean") {
      delete after["enabled"];
      after["disabled"] = !given["enabled"];
    }
    return withReplaced(text, path, before, after);
  }

  #serverPath(text: string, file: string, { id, origin }: ServerSpec): readonly string[] {
    const [, own, role] = /^(.*)@([^@]*)$/.exec(id) ?? [];
    const paths = [
      ["mcpServers", id],
      ...(own === undefined || role === undefined ? [] : [["roles", role, "mcpServers", own]]),
    ];
    const path = origin.file === file ? paths.find((each) => hasPath(file, text, each)) : undefined;
    if (path !== undefined) return path;
    throw new ToolcribError("conflict", `The server "${id}" comes from ${origin.file}, which is not edited here.`, {
      hint: "Change it there. A project's config has to be trusted again afterwards.",
      details: { file: origin.file },
    });
  }

  #requireServer(id: string): ServerSpec {
    const spec = this.#spec(id);
    if (spec !== undefined) return spec;
    throw new ToolcribError("not_found", `There is no server "${id}".`, { hint: "List the servers to see their ids." });
  }

  #spec(id: string): ServerSpec | undefined {
    return this.#options.current.config.servers.find((spec) => spec.id === id);
  }

  #tool(pattern: string): ToolCapability | undefined {
    const name = pattern.replace(/^=tool:/, "");
    const { catalog } = this.#options.parts;
    return catalog.find(name) ?? catalog.snapshot().tools.find(({ shape }) => shape?.original.name === name);
  }

  /** A rule for a name with a typing error would protect nothing, and say so nowhere. */
  #nameless(changes: readonly ConfigChange[]): string[] {
    const { catalog } = this.#options.parts;
    const patterns = changes.flatMap((change) => {
      if (change.kind !== "rule" || change.verdict === "none" || change.serverId !== undefined) return [];
      return change.patterns.filter((pattern) => PUBLIC_NAME.test(pattern) && pattern.includes("__"));
    });
    const names = catalog.snapshot().tools.map(({ name }) => name);
    return patterns.flatMap((pattern) => {
      if (this.#tool(pattern) !== undefined || catalog.findPrompt(pattern) !== undefined) return [];
      const [near] = nearMatches(pattern, names, 1);
      return `No tool is called ${pattern} now${near === undefined ? "" : `; did you mean ${near}?`}`.replace(
        /[^?]$/,
        "$&.",
      );
    });
  }

  #matchable(tool: ToolCapability): Matchable & { readonly names: readonly string[] } {
    const { publicName, aliases = [], annotations, tags } = this.#options.current.wiring.path.access.subject(tool);
    return { kind: "tool", names: [publicName, ...aliases], annotations, tags };
  }

  /** Who sees and may use what, compared with now. */
  #effect(next: Wiring): PlannedChange["effect"] {
    const { current, sessions, parts } = this.#options;
    const now = current.wiring;
    const tools = parts.catalog.snapshot().tools.filter((tool) => hidingLayerOf(tool) === undefined);
    const gone = goneServers(now.config, next.config);
    const changesOf = (session: Session): ToolChanges => compare(tools, session, now, next, gone);
    const known = new Map<string, ToolChanges>();
    const clients = sessions
      .all()
      .filter((session) => session !== sessions.own && CLIENT_DOORS.has(session.door))
      .flatMap((session) => {
        const key = JSON.stringify([session.viewKey, session.owner, session.taint !== null]);
        let changes = known.get(key);
        if (changes === undefined) known.set(key, (changes = changesOf(session)));
        const { id, clientInfo, user = null, role = null } = session;
        const client = clientInfo?.title ?? clientInfo?.name ?? null;
        return isNothing(changes) ? [] : [{ session: id, client, user, role, ...changes }];
      })
      .slice(0, MAX_CLIENTS);
    const roles = new Set([...Object.keys(now.config.config.roles), ...Object.keys(next.config.config.roles)]);
    const ofRoles = [null, ...roles].flatMap((role) => {
      const session = role === null ? ownerSession() : new Session({ door: "library", role, owner: false });
      const changes = changesOf(session);
      return isNothing(changes) ? [] : [{ role, ...changes }];
    });
    return { clients, roles: ofRoles };
  }

  #unmet(changes: readonly ConfigChange[], next: Wiring): PlannedChange["unmet"] {
    return changes.flatMap((change) => {
      if (change.kind !== "rule" || change.verdict === "none") return [];
      const { role, verdict: wanted } = change;
      const session = role === undefined ? ownerSession() : new Session({ door: "library", role, owner: false });
      return change.patterns.flatMap((pattern) => {
        const tool = this.#tool(pattern);
        if (tool === undefined) return [];
        const { verdict, rule } = next.path.access.decide(session, tool);
        if (verdict === wanted) return [];
        const shown = rule && { level: rule.level, list: rule.list, pattern: rule.pattern, where: rule.where };
        return [{ name: tool.name, verdict, rule: shown }];
      });
    });
  }
}

/** As `tools.naming` makes them: no glob, class or condition. */
const PUBLIC_NAME = /^[\w.-]+$/;

/** Clients and agents come through these; others are people and commands. */
const CLIENT_DOORS: ReadonlySet<string> = new Set(["mcp", "acp", "library"]);
const MAX_CLIENTS = 200;
const MAX_NAMES = 100;

type ToolChanges = Pick<PlannedChange["effect"]["roles"][number], "loses" | "gains" | "asks" | "frees" | "counts">;

function ownerSession(): Session {
  return new Session({ door: "library", owner: true });
}

function compare(
  tools: readonly ToolCapability[],
  session: Session,
  now: Wiring,
  next: Wiring,
  gone: ReadonlySet<string>,
): ToolChanges {
  const changes = { loses: [] as string[], gains: [] as string[], asks: [] as string[], frees: [] as string[] };
  for (const tool of tools) {
    const before = now.path.access.decide(session, tool).verdict;
    const after: Decision["verdict"] = gone.has(tool.origin.source)
      ? "deny"
      : next.path.access.decide(session, tool).verdict;
    if (before === after) continue;
    if (after === "deny") changes.loses.push(tool.name);
    else if (before === "deny") changes.gains.push(tool.name);
    else changes[after === "ask" ? "asks" : "frees"].push(tool.name);
  }
  const { loses, gains, asks, frees } = changes;
  const shown = (names: readonly string[]): string[] => names.slice(0, MAX_NAMES);
  return {
    ...{ loses: shown(loses), gains: shown(gains), asks: shown(asks), frees: shown(frees) },
    counts: { loses: loses.length, gains: gains.length, asks: asks.length, frees: frees.length },
  };
}

function isNothing({ counts }: ToolChanges): boolean {
  return counts.loses + counts.gains + counts.asks + counts.frees === 0;
}

/** Servers that will not run any more. */
function goneServers(now: LoadedConfig, next: LoadedConfig): ReadonlySet<string> {
  const running = new Set(next.servers.filter(({ enabled }) => enabled).map(({ id }) => id));
  return new Set(now.servers.map(({ id }) => id).filter((id) => !running.has(id)));
}

/** Problems in servers' entries of the next config that the current one does not have. */
function newEntryProblems({ unusable: now }: LoadedConfig, { unusable: next }: LoadedConfig): Diagnostic[] {
  // By place without line: other changes of the file move it.
  const keyOf = ({ code, path }: Diagnostic): string => `${code} ${path}`;
  const known = new Set([...(now?.values() ?? [])].flat().map(keyOf));
  return [...(next?.values() ?? [])].flat().filter((problem) => !known.has(keyOf(problem)));
}

/** Who is let in may change for everyone at once. */
function accessNotes({ config: now }: LoadedConfig, { config: next }: LoadedConfig): string[] {
  const [before, after] = [now.http.auth, next.http.auth];
  if (before === undefined && after !== undefined) {
    return ["http.auth is new: clients on this machine that send no token are refused from now on."];
  }
  const hadTokens = (before?.tokens?.length ?? 0) > 0;
  if (hadTokens && after?.tokens?.length === 0 && after.oauth === undefined) {
    return ["No token is left: no one is admitted but the user who runs the hub."];
  }
  return [];
}

/** `tc_` and 256 random bits, so that scanners find it where it was left lying. */
function newToken(): string {
  return `tc_${randomBytes(32).toString("base64url")}`;
}

function withToken(
  text: string,
  file: string,
  { name, user, role, scopes }: Extract<ConfigChange, { kind: "token" }>,
  token: string,
): string {
  const path = ["http", "auth", "tokens"];
  if (tokensOf(file, text).some((each) => each["name"] === name)) {
    throw new ToolcribError("conflict", `${file} already has a token named ${JSON.stringify(name)}.`, {
      hint: "Choose another name, or revoke that one first.",
    });
  }
  const entry = {
    name,
    sha256: createHash("sha256").update(token).digest("hex"),
    ...(user === undefined ? {} : { user }),
    ...(role === undefined ? {} : { role }),
    scopes,
    created: new Date().toISOString().slice(0, 10),
  };
  return appendItem(text, path, entry);
}

function withoutToken(text: string, file: string, name: string): string {
  if (!tokensOf(file, text).some((each) => each["name"] === name)) {
    throw new ToolcribError("not_found", `${file} has no token named ${JSON.stringify(name)}.`);
  }
  return removeProperty(text, ["http", "auth", "tokens", { key: "name", is: name }]);
}

function tokensOf(file: string, text: string): JsonObject[] {
  const { tokens } = valueAt(file, text, ["http", "auth"]);
  return Array.isArray(tokens) ? tokens.filter(isJsonObject) : [];
}

/** The object at a path; an empty one if there is none. */
function valueAt(file: string, text: string, path: readonly string[]): JsonObject {
  let value: unknown = ConfigDocument.parse(file, text).value;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return isJsonObject(value) ? value : {};
}

/** The lists at a path. What is not a list of texts is left to the load, which says what is wrong with it. */
function rulesAt(file: string, text: string, path: readonly string[]): Pick<ToolRules, "allow" | "ask" | "deny"> {
  const found = valueAt(file, text, path);
  const list = (key: string): string[] | undefined => {
    const value = found[key];
    return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : undefined;
  };
  return { allow: list("allow"), ask: list("ask"), deny: list("deny") };
}

function hasPath(file: string, text: string, path: readonly string[]): boolean {
  return Object.hasOwn(valueAt(file, text, path.slice(0, -1)), path.at(-1) ?? "");
}

/** Entry by entry, so that comments in the lists stay. */
function withLists(
  text: string,
  path: readonly string[],
  before: Pick<ToolRules, "allow" | "ask" | "deny">,
  after: Pick<ToolRules, "allow" | "ask" | "deny">,
): string {
  let draft = text;
  for (const list of ["allow", "ask", "deny"] as const) {
    const [had = [], has = []] = [before[list], after[list]];
    const at = [...path, list];
    for (const entry of had) if (!has.includes(entry)) draft = removeItem(draft, at, entry);
    for (const entry of has) if (!had.includes(entry)) draft = appendItem(draft, at, entry);
    // An empty allow list denies everything, so it stays.
    if (list !== "allow" && had.length > 0 && has.length === 0) draft = removeProperty(draft, at);
  }
  return draft;
}

/** Sets the keys of an object; null removes one. */
function withObject(text: string, file: string, path: readonly string[], keys: JsonObject): string {
  const before = valueAt(file, text, path);
  const after = { ...before };
  for (const [key, value] of Object.entries(keys)) {
    if (value === null) delete after[key];
    else after[key] = value;
  }
  return withReplaced(text, path, before, after);
}

/** Changes the keys that differ, and inside of objects those of the objects. */
function withReplaced(text: string, path: readonly string[], before: JsonObject, after: JsonObject): string {
  let draft = text;
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [had, has] = [before[key], after[key]];
    if (JSON.stringify(had) === JSON.stringify(has)) continue;
    if (has === undefined) draft = removeProperty(draft, [...path, key]);
    else if (isJsonObject(had) && isJsonObject(has)) draft = withReplaced(draft, [...path, key], had, has);
    else draft = setProperty(draft, [...path, key], has);
  }
  return draft;
}

function entryText(entry: JsonObject): string {
  return `${JSON.stringify(entry, undefined, 2)}\n`;
}

function storePlace({ servers }: LoadedConfig, id: string): string {
  return `${servers.find((spec) => spec.id === id)?.origin.file ?? "the store"} (server ${id})`;
}

function notWritable(file: string, error: unknown): ToolcribError {
  return new ToolcribError("conflict", `${file} cannot be written (${systemErrorCode(error) ?? "unknown reason"}).`, {
    hint: "Make it writable for the hub, or make the change where the file is deployed from.",
    cause: error,
  });
}

/** Rejects as the step does, after what was written before it is taken back. */
async function orRestore(file: string, step: Promise<unknown>, restore: () => Promise<void>): Promise<void> {
  try {
    await step;
  } catch (error) {
    await restore().catch((cause: unknown) => {
      const { message } = asToolcribError(error);
      // Whoever reads the first error alone would take the file for unchanged.
      throw new ToolcribError("conflict", `${message} What was written to ${file} before could not be taken back.`, {
        hint: "Look at the file, and change it by hand.",
        details: { file },
        cause,
      });
    });
    throw error;
  }
}
