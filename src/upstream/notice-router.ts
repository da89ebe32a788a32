/** Takes a server's notifications to where they belong: the lists, the caller they are for, or whoever listens. */
import type { Emitter } from "../model/emitter.ts";
import type { JsonObject } from "../model/json.ts";
import type { ConnectionEvents } from "./connection-events.ts";
import type { ListKind } from "./discovery.ts";
import type { RequestOptions } from "./request-options.ts";
import { readNotice } from "./server-notice.ts";

interface NoticeTargets {
  readonly events: Emitter<ConnectionEvents>;
  readonly onListChanged: (list: ListKind) => void;
  /** The stream of changes is open; `request` is the one that opened it, if that is known. */
  readonly onStreamAcknowledged: (params: JsonObject, request: RequestOptions | undefined) => void;
  readonly warn: (text: string) => void;
}

export class NoticeRouter {
  readonly #targets: NoticeTargets;

  constructor(targets: NoticeTargets) {
    this.#targets = targets;
  }

  /** @param request The request that it belongs to, if that is known. */
  route(method: string, params: JsonObject, request: RequestOptions | undefined): void {
    const { events, onListChanged, onStreamAcknowledged } = this.#targets;
    const notice = readNotice(method, params);
    switch (notice.kind) {
      case "list-changed":
        return onListChanged(notice.list);
      case "log":
        return events.emit("log", { message: notice.message, ...this.#toldCaller(method, params, request) });
      case "resource-updated":
        return events.emit("resource-updated", { uri: notice.uri, params });
      case "stream-acknowledged":
        return onStreamAcknowledged(params, request);
      case "unknown":
        if (this.#toldCaller(method, params, request) === undefined) events.emit("notice", { method, params });
    }
  }

  /** Undefined if it belongs to no call, or to one whose caller does not want it. */
  #toldCaller(method: string, params: JsonObject, request?: RequestOptions): { callId: string } | undefined {
    if (request?.onNotice === undefined) return undefined;
    try {
      request.onNotice(method, params);
    } catch (error) {
      this.#targets.warn(`A listener for notifications failed: ${String(error)}`);
    }
    return { callId: request.callId ?? "" };
  }
}
