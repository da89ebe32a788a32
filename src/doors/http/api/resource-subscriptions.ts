import type { Hub } from "../../../hub/hub.ts";
import { reportUpdate, type ResourceFollower } from "../../../hub/view/resource-updates.ts";
import type { Session } from "../../../sessions/session.ts";
import { type Notify, receiverOf, type Requester } from "./questions.ts";

interface Follower extends ResourceFollower {
  readonly followed: Set<string>;
}

/** The resources that sessions of REST and the WebSocket follow. */
export class ResourceSubscriptions {
  readonly #followers = new Map<Session, Follower>();
  readonly #notify: Notify;
  readonly #stop: () => void;

  constructor(hub: Pick<Hub, "on" | "internals">, notify: Notify) {
    this.#notify = notify;
    this.#stop = hub.on("resource-updated", (event) => reportUpdate(hub, this.#followers.values(), event));
  }

  /** The returned function takes it back, unless it was followed before. */
  add(context: Requester, uri: string): () => void {
    const { followed } = this.#followers.get(context.session) ?? this.#begin(context);
    if (followed.has(uri)) return () => {};
    followed.add(uri);
    return () => followed.delete(uri);
  }

  delete(session: Session, uri: string): void {
    this.#followers.get(session)?.followed.delete(uri);
  }

  close(): void {
    this.#stop();
    this.#followers.clear();
  }

  #begin(context: Requester): Follower {
    const { session } = context;
    const to = receiverOf(context);
    const followed = new Set<string>();
    const resourceUpdated = ({ uri }: { readonly uri?: unknown }): void => {
      if (typeof uri === "string") this.#notify({ type: "resource.updated", uri, session: session.id }, to);
    };
    const follower: Follower = { session, followed, resourceUpdated };
    this.#followers.set(session, follower);
    const stop = session.ownEvents.on("resource", ({ uri }) => followed.has(uri) && resourceUpdated({ uri }));
    const end = (): void => {
      stop();
      this.#followers.delete(session);
    };
    session.closing.addEventListener("abort", end, { once: true });
    return follower;
  }
}
