/** Everything below the hub speaks in events; this is where they become the hub's own. */
import type { Catalog } from "../catalog/catalog.ts";
import type { Emitter } from "../model/emitter.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";
import type { HubEvents } from "./events.ts";

/** In-process sources and servers alike. */
export function relayCatalog(catalog: Catalog, events: Emitter<HubEvents>): void {
  catalog.on("change", (change) => events.emit("catalog", change));
  catalog.on("warning", ({ source, message }) => events.emit("warning", { server: source, message }));
}

/** What a server says, whether it serves already, no longer, or not yet. */
export function relayWords(connection: ServerConnection, events: Emitter<HubEvents>): () => void {
  const server = connection.id;
  return stopAll([
    connection.on("log", (event) => events.emit("log", { server, ...event })),
    connection.on("notice", (event) => events.emit("notice", { server, ...event })),
    connection.on("warning", (message) => events.emit("warning", { server, message })),
  ]);
}

/** What becomes of the connection that serves under its id. */
export function relayLife(connection: ServerConnection, catalog: Catalog, events: Emitter<HubEvents>): () => void {
  const server = connection.id;
  return stopAll([
    connection.on("state", ({ previous }) =>
      events.emit("server", { info: connection.info(), previous: previous.kind }),
    ),
    connection.on("resource-updated", ({ uri, ...event }) =>
      events.emit("resource-updated", { server, ...event, uri: catalog.publicUri(server, uri), originUri: uri }),
    ),
  ]);
}

function stopAll(stops: readonly (() => void)[]): () => void {
  return () => {
    for (const stop of stops) stop();
  };
}
