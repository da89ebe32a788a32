/** Notifies clients of changed lists, updated resources and log messages of servers. */
import { splitMappedUri } from "../../catalog/public-uris.ts";
import type { HubEvents } from "../../hub/hub-events.ts";
import type { Hub } from "../../hub/hub.ts";
import type { View } from "../../hub/view/view.ts";
import type { Capability } from "../../model/capability.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Session } from "../../sessions/session.ts";
import { isTaskReport, KnownTasks } from "./tasks.ts";

/** Resources and their templates change together. */
export type ListKind = "tools" | "resources" | "prompts";
const LIST_KINDS: readonly ListKind[] = ["tools", "resources", "prompts"];

export interface ChangeListener {
  readonly session: Session;
  listsChanged(kinds: ReadonlySet<ListKind>): void;
  /** The resources that it follows, by public URI. */
  readonly followed: ReadonlySet<string>;
  /** Of one of them, or a part of one. */
  resourceUpdated(params: JsonObject): void;
  /** A log message that belongs to no call. */
  log?(message: JsonObject): void;
  /** A server says that its list changed, and it is as it was: perhaps it did for a moment. */
  listAnnounced?(kind: ListKind): void;
  /** Any other notification of a server that belongs to no call. */
  notice?(method: string, params: JsonObject): void;
}

/** The lists that a client saw last. */
interface ListSnapshot {
  readonly view: View;
  readonly tools: readonly Capability[];
}

export class ChangeListeners {
  readonly tasks = new KnownTasks();
  readonly #hub: Hub;
  readonly #listeners = new Map<ChangeListener, ListSnapshot>();
  /** Log messages that a detector still reads. */
  #reading: Promise<void> | undefined;
  readonly #stops: (() => void)[];

  constructor(hub: Hub) {
    this.#hub = hub;
    this.#stops = [
      hub.on("catalog", () => this.#compare()),
      hub.on("visibility", () => this.#compare()),
      hub.on("resource-updated", (event) => this.#resourceUpdated(event)),
      hub.on("log", (event) => this.#logged(event)),
      hub.on("notice", (event) => this.#noticed(event)),
    ];
  }

  /** Notifies of changes from now on, until the returned function is called. */
  add(listener: ChangeListener): () => void {
    this.#listeners.set(listener, this.#hub.internals.lists(listener.session));
    const { ownEvents } = listener.session;
    const stops = [
      ownEvents.on("change", () => this.#compare([listener])),
      ownEvents.on("resource", ({ uri }) => listener.followed.has(uri) && listener.resourceUpdated({ uri })),
    ];
    return () => {
      for (const stop of stops) stop();
      this.#listeners.delete(listener);
    };
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#listeners.clear();
  }

  /** Notifies clients whose lists changed. Clients with the same view are compared once. */
  #compare(listeners: Iterable<ChangeListener> = this.#listeners.keys()): void {
    const known = new Map<View, Map<View, ReadonlySet<ListKind>>>();
    for (const listener of listeners) {
      const before = this.#listeners.get(listener);
      if (before === undefined || listener.session.closed) continue;
      const now = this.#hub.internals.lists(listener.session);
      if (now.view === before.view) continue;
      this.#listeners.set(listener, now);
      let fromHere = known.get(before.view);
      if (fromHere === undefined) known.set(before.view, (fromHere = new Map()));
      let kinds = fromHere.get(now.view);
      if (kinds === undefined) fromHere.set(now.view, (kinds = changedKinds(before, now)));
      if (kinds.size > 0) listener.listsChanged(kinds);
    }
  }

  /** A server may report a part of a subscribed resource; clients subscribed to exactly that part come first. */
  #resourceUpdated(event: HubEvents["resource-updated"]): void {
    const { uri, params } = event;
    const concerned = [...this.#listeners.keys()].filter((listener) => isAddressedTo(listener, event));
    const exact = concerned.filter(({ followed }) => followed.has(uri));
    for (const listener of exact) {
      // A rule may have hidden it since.
      if (this.#hub.internals.resourceOrigin(listener.session, uri) !== undefined)
        listener.resourceUpdated({ ...params, uri });
    }
    if (exact.length > 0) return;
    for (const listener of concerned) {
      const known = this.#knownAs(listener, event);
      if (known !== undefined) listener.resourceUpdated({ ...params, uri: known });
    }
  }

  /** The URI for a listener that follows the whole resource, or follows it under another URI. */
  #knownAs({ session, followed }: ChangeListener, update: HubEvents["resource-updated"]): string | undefined {
    const { server, uri, originUri } = update;
    for (const each of followed) {
      const whole = splitMappedUri(each)?.uri ?? each;
      if (originUri !== whole && !isSubResource(originUri, whole)) continue;
      const origin = this.#hub.internals.resourceOrigin(session, each);
      if (origin?.source !== server || origin.name !== whole) continue;
      if (originUri === whole) return each;
      // A client can read what it is notified of.
      if (uri === originUri) session.links.add(uri, server);
      if (this.#hub.internals.resourceOrigin(session, uri)?.source === server) return uri;
    }
    return undefined;
  }

  #logged(event: HubEvents["log"]): void {
    // The caller has got it already.
    if (event.callId !== undefined) return;
    const reading = this.#hub.internals.guardedLog(event.server, event.message);
    const tell = (message: HubEvents["log"]["message"]): void =>
      this.#tellViewers(event, (listener) => listener.log?.(message));
    if (!(reading instanceof Promise) && this.#reading === undefined) return tell(reading);
    // In their order. One that a detector could not read is dropped.
    const done: Promise<void> = Promise.all([reading, this.#reading])
      .then(([message]) => tell(message))
      .catch(() => {})
      .finally(() => {
        if (this.#reading === done) this.#reading = undefined;
      });
    this.#reading = done;
  }

  #noticed(event: HubEvents["notice"]): void {
    const kind = LIST_KINDS.find((each) => event.method === `notifications/${each}/list_changed`);
    if (isTaskReport(event.method)) {
      for (const listener of this.#listeners.keys()) {
        const params = this.tasks.reportFor(listener.session, event.server, event.params);
        if (params !== undefined) listener.notice?.(event.method, params);
      }
      return;
    }
    if (kind !== undefined) return this.#tellViewers(event, (listener) => listener.listAnnounced?.(kind));
    this.#tellViewers(event, (listener) => listener.notice?.(event.method, event.params));
  }

  #tellViewers(event: Addressed & { readonly server: string }, tell: (listener: ChangeListener) => void): void {
    for (const [listener, { view }] of this.#listeners) {
      if (isAddressedTo(listener, event) && sourcesOf(view).has(event.server)) tell(listener);
    }
  }
}

interface Addressed {
  readonly user?: string | null;
  readonly session?: string;
}

/** Messages of an isolated connection are for its user or session alone. */
function isAddressedTo({ session }: ChangeListener, { user, session: only }: Addressed): boolean {
  if (only !== undefined) return session.id === only;
  if (user === null) return session.owner && session.user === undefined;
  return user === undefined || session.user === user;
}

/** One of the two ends or begins with what divides the parts of a URI. */
function isSubResource(uri: string, whole: string): boolean {
  if (uri.length <= whole.length || !uri.startsWith(whole)) return false;
  return "/?#".includes(uri.charAt(whole.length)) || /[/?#]$/.test(whole);
}

function changedKinds(before: ListSnapshot, now: ListSnapshot): ReadonlySet<ListKind> {
  const kinds = new Set<ListKind>();
  if (!isSameList(before.tools, now.tools)) kinds.add("tools");
  if (!isSameList(before.view.prompts, now.view.prompts)) kinds.add("prompts");
  if (
    !isSameList(before.view.resources, now.view.resources) ||
    !isSameList(before.view.templates, now.view.templates)
  ) {
    kinds.add("resources");
  }
  return kinds;
}

/** The catalog keeps the object of a capability that did not change. */
function isSameList(before: readonly Capability[], now: readonly Capability[]): boolean {
  return before.length === now.length && before.every((capability, index) => capability === now[index]);
}

const sources = new WeakMap<View, ReadonlySet<string>>();

/** The ids of the sources of which a view shows anything. */
export function sourcesOf(view: View): ReadonlySet<string> {
  let ids = sources.get(view);
  if (ids === undefined) {
    const all = [...view.tools, ...view.resources, ...view.templates, ...view.prompts];
    ids = new Set(all.map(({ origin }) => origin.source));
    sources.set(view, ids);
  }
  return ids;
}
