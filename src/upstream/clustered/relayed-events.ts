/** What a server says of its own accord reaches the sessions of every node. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { Emitter } from "../../model/emitter.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ConnectionEvents } from "../connection-events.ts";
import type { LocalServer } from "./local-server.ts";
import { ownSessionId } from "./remote-sessions.ts";
import { newsTopic } from "./slot-names.ts";

const RELAYED = ["log", "notice", "warning", "resource-updated"] as const satisfies (keyof ConnectionEvents)[];

type Events = Pick<Emitter<ConnectionEvents>, "emit">;

/** Of a server that runs here: to the sessions here and to the other nodes. */
export function tellNews(server: LocalServer, word: string, cluster: Cluster, events: Events): void {
  for (const name of RELAYED) {
    server.on(name, (event) => {
      events.emit(name, event);
      if (cluster.nodes().length > 1) cluster.publish(newsTopic(word), { name, event });
    });
  }
}

/** @param isHolder Whether the server runs at that node: what others say of it is not heard. */
export function hearNews(
  word: string,
  cluster: Cluster,
  events: Events,
  isHolder: (node: string) => boolean,
): () => void {
  return cluster.subscribe(newsTopic(word), ({ name, event }: JsonObject, from) => {
    const known = RELAYED.find((each) => each === name);
    if (known === undefined || !isHolder(from)) return;
    // The other node sent it with `tellNews`: what is under a name is that event.
    events.emit(known, asKnownHere(event, cluster.node.id) as never);
  });
}

/** What is meant for one session names it as it is called where the server runs. */
function asKnownHere(event: unknown, node: string): unknown {
  if (!isJsonObject(event) || typeof event["session"] !== "string") return event;
  return { ...event, session: ownSessionId(event["session"], node) };
}
