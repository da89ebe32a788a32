/** `subscriptions/listen`: one stream that tells what the client chose to hear of, until either side ends it. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { SERVER_INFO_KEY, SUBSCRIPTION_KEY } from "../../model/protocol.ts";
import type { RequestId } from "../../model/rpc.ts";
import type { Session } from "../../sessions/session.ts";
import type { DoorParts } from "./door-parts.ts";
import type { Origin } from "./origin.ts";
import { encodeNotification, encodeResult } from "./encode.ts";
import type { Encoded, Outlet } from "./encoded.ts";
import type { ListKind } from "./listeners.ts";
import { invalidParams } from "./params.ts";
import { SERVER_INFO } from "./welcome.ts";

interface Listening {
  readonly id: RequestId;
  readonly params: JsonObject;
  readonly origin: Origin;
  /** The hub session that the caller's requests share. */
  readonly principal: Session;
  readonly outlet: Outlet;
  /** The client ended it. */
  readonly signal: AbortSignal;
  /** The door ends. */
  readonly closing: AbortSignal;
}

const LIST_FILTERS = {
  tools: "toolsListChanged",
  resources: "resourcesListChanged",
  prompts: "promptsListChanged",
} as const satisfies Record<ListKind, string>;

/** Resolves with the answer that ends the stream. */
export async function listen(door: DoorParts, listening: Listening): Promise<Encoded> {
  const { id, params, origin, outlet, signal, closing } = listening;
  const wanted = params["notifications"];
  if (!isJsonObject(wanted)) throw invalidParams("subscriptions/listen needs `notifications`, an object.");
  // A session of its own: what the stream follows ends with the stream, and with nothing else.
  using session = door.hub.openSession({ ...door.sessionOptions(origin), links: listening.principal.links });
  const tell = (method: string, told: JsonObject = {}): void => {
    outlet.send(encodeNotification(method, { ...told, _meta: { ...metaIn(told), [SUBSCRIPTION_KEY]: id } }));
  };

  const kinds = (Object.keys(LIST_FILTERS) as ListKind[]).filter((kind) => wanted[LIST_FILTERS[kind]] === true);
  const followed = new Set<string>();
  // The acknowledgement has to be the first message, and comes when every server has answered.
  let early: (() => void)[] | undefined = [];
  const inTime = (telling: () => void): void => {
    if (early === undefined) telling();
    else early.push(telling);
  };
  const stop = door.listeners.add({
    session,
    listsChanged: (changed) => {
      for (const kind of kinds) if (changed.has(kind)) inTime(() => tell(`notifications/${kind}/list_changed`));
    },
    followed,
    resourceUpdated: (updated) => inTime(() => tell("notifications/resources/updated", updated)),
  });
  // Nobody can be asked here; but it is the same client as that of the caller's other requests.
  const client = { key: listening.principal, waiting: true, capabilities: {} };
  try {
    await Promise.all(
      urisIn(wanted).map(async (uri) => {
        const outcome = await door.hub.subscribe(session, { uri, signal, client });
        if (outcome.ok) followed.add(uri);
      }),
    );
    const honoured: JsonObject = Object.fromEntries(kinds.map((kind) => [LIST_FILTERS[kind], true]));
    if (followed.size > 0) honoured["resourceSubscriptions"] = [...followed];
    tell("notifications/subscriptions/acknowledged", { notifications: honoured });
    const waiting = early;
    early = undefined;
    for (const telling of waiting) telling();
    if (Object.keys(honoured).length > 0) await aborted([signal, closing, session.closing]);
  } finally {
    stop();
  }
  return encodeResult(id, {
    resultType: "complete",
    _meta: { [SUBSCRIPTION_KEY]: id, [SERVER_INFO_KEY]: SERVER_INFO },
  });
}

function urisIn(wanted: JsonObject): string[] {
  const uris = wanted["resourceSubscriptions"];
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
}

function metaIn(params: JsonObject): JsonObject {
  const meta = params["_meta"];
  return isJsonObject(meta) ? meta : {};
}

function aborted(signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", end);
      resolve();
    };
    if (signals.some((signal) => signal.aborted)) resolve();
    else for (const signal of signals) signal.addEventListener("abort", end, { once: true });
  });
}
