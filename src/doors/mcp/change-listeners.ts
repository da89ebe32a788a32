/** Notifies clients of changed lists, updated resources and log messages of servers. */
import type { HubEvents } from "../../hub/hub-events.ts";
import type { Hub } from "../../hub/hub.ts";
import { type Addressed, isAddressedTo, reportUpdate, type ResourceFollower } from "../../hub/view/resource-updates.ts";
import type { View } from "../../hub/view/view.ts";
import type { Capability } from "../../model/capability.ts";
import type { JsonObject } from "../../model/json.ts";
import { isTaskReport, LEGACY_REPORT } from "../../model/protocol.ts";
import { KnownTasks } from "./tasks.ts";

/** Resources and their templates change together. */
export type ListKind = "tools" | "resources" | "prompts";
const LIST_KINDS: readonly ListKind[] = ["tools", "resources", "prompts"];

export interface ChangeListener extends ResourceFollower {
  listsChanged(kinds: ReadonlySet<ListKind>): void;
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
      hub.on("resource-updated", (event) => this.#updated(event)),
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
      ownEvents.on("elicited", (params) => listener.notice?.("notifications/elicitation/complete", params)),
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

  #logged(event: HubEvents["log"]): void {
    // The caller has got it already.
    if (event.callId !== undefined) return;
    this.#guarded(event.server, event.message, (message) =>
      this.#tellViewers(event, (listener) => listener.log?.(message)),
    );
  }

  #updated(event: HubEvents["resource-updated"]): void {
    const { server, params = {} } = event;
    this.#guarded(server, params, (seen) => {
      // That the resource changed is not text of the server.
      reportUpdate(this.#hub, this.#listeners.keys(), { ...event, params: seen === params ? params : {} });
    });
  }

  #guarded<Message extends JsonObject>(server: string, given: Message, tell: (message: Message) => void): void {
    const reading = this.#hub.internals.guardedLog(server, given);
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
      const followers = new Set<() => void>();
      for (const listener of this.#listeners.keys()) {
        const { session } = listener;
        for (const follower of this.tasks.followersOf(session, event.server, event.params)) followers.add(follower);
        const params = this.tasks.reportFor(session, event.server, event.method, event.params);
        if (params !== undefined && isAddressedTo(listener, event)) listener.notice?.(LEGACY_REPORT, params);
      }
      for (const reported of followers) reported();
      return;
    }
    if (kind !== undefined) return this.#tellViewers(event, (listener) => listener.listAnnounced?.(kind));
    this.#guarded(event.server, event.params, (params) =>
      this.#tellViewers(event, (listener) => listener.notice?.(event.method, params)),
    );
  }

  #tellViewers(event: Addressed & { readonly server: string }, tell: (listener: ChangeListener) => void): void {
    for (const [listener, { view }] of this.#listeners) {
      if (isAddressedTo(listener, event) && sourcesOf(view).has(event.server)) tell(listener);
    }
  }
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
