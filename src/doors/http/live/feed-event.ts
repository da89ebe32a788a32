/** Events of the live feed: who may see one, and its frames. */
import type { LoadedConfig } from "../../../config/load-config.ts";
import { type EventName, EVENTS, type FieldsOf } from "../../../contract/websocket.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { View } from "../../../hub/view/view.ts";
import type { Caller } from "../../../model/caller.ts";
import type { Session } from "../../../sessions/session.ts";
import type { DeepReadonly } from "../api/operation-handler.ts";
import { canSeeServer, canSeeSkill, type ServerSnapshot } from "../api/visibility.ts";

export type Fields<Name extends EventName> = DeepReadonly<FieldsOf<Name>>;

export interface Audience {
  /** Only for viewers who see this server, as it was then. */
  readonly server?: ServerSnapshot;
  /** Only for viewers who may see a skill of this name. */
  readonly skill?: string;
  /** Also for the session that caused it. */
  readonly session?: string;
}

export type FeedEvent<Name extends EventName = EventName> = {
  [Each in Name]: { readonly type: Each; readonly fields: Fields<Each>; readonly audience: Audience };
}[Name];

/** Publishes an event, in order. */
export type Publish = <Name extends EventName>(type: Name, fields: Fields<Name>, audience?: Audience) => void;

/** The parts of a hub that events come from; its own session sees everything that can be seen. */
export type FeedHub = Pick<Hub, "session" | "config" | "on" | "view"> & {
  readonly servers: Pick<Hub["servers"], "list">;
  readonly pins: Pick<Hub["pins"], "stateOf">;
};

/** One frame, ready for a wire. */
export class Frame {
  readonly type: EventName;
  readonly text: string;
  /** The number from which a receiver of this frame can resume. */
  readonly position: number;
  #bytes: Buffer | undefined;

  private constructor(type: EventName, fields: object, position: number, seq?: number) {
    this.type = type;
    this.position = position;
    this.text = JSON.stringify(seq === undefined ? { type, ...fields } : { seq, type, ...fields });
  }

  static numbered(seq: number, type: EventName, fields: object): Frame {
    return new Frame(type, fields, seq, seq);
  }

  /** For one receiver, so it has no number of its own. */
  static lost(from: number, to: number): Frame {
    const fields: Fields<"events.lost"> = { from, to };
    return new Frame("events.lost", fields, to);
  }

  /** The same bytes for every socket. */
  get bytes(): Buffer {
    return (this.#bytes ??= Buffer.from(this.text));
  }
}

export interface EventViewer {
  readonly caller: Caller;
  readonly session: Session;
}

interface ViewSource {
  readonly config: LoadedConfig;
  view(session: Session): View;
}

/** A numbered event, encoded once for all clients that get the same content. */
export class NumberedEvent {
  readonly seq: number;
  readonly #event: FeedEvent;
  readonly #whole: Frame;
  readonly #parts = new Map<string, Frame>();
  /** By view, which sessions that see the same share. */
  readonly #byView = new WeakMap<View, Frame>();

  constructor(seq: number, event: FeedEvent) {
    this.seq = seq;
    this.#event = event;
    this.#whole = Frame.numbered(seq, event.type, event.fields);
  }

  get type(): EventName {
    return this.#event.type;
  }

  get size(): number {
    return this.#whole.text.length;
  }

  /** The frame for a viewer; undefined if the event is not for it. */
  for(beholder: EventViewer, sight: ViewSource): Frame | undefined {
    const { type, audience } = this.#event;
    const { caller, session } = beholder;
    const isOperator = caller.scopes.has("admin");
    const { scope } = EVENTS[type];
    if (scope !== "read") {
      if (caller.scopes.has(scope)) return this.#whole;
      return audience.session === session.id ? this.#ofOwn(session, sight) : undefined;
    }
    if (!caller.scopes.has("read")) return undefined;
    if (audience.server !== undefined && !canSeeServer(sight.config, session, audience.server)) return undefined;
    if (audience.skill !== undefined && !canSeeSkill(sight.config, session, audience.skill)) return undefined;
    if (type === "mcp.tools.discovered") return this.#ofTools(this.#event.fields, sight.view(session));
    if (type === "skills.batch.imported" || type === "openclaw.batch.imported") {
      return isOperator && session.role === undefined ? this.#whole : this.#ofBatch(this.#event.fields, session, sight);
    }
    return this.#whole;
  }

  /** A caller gets the same event for a call to a hidden tool as for a call to a missing one. */
  #ofOwn(session: Session, { config }: ViewSource): Frame {
    const event = this.#event;
    if (event.type !== "call.started" && event.type !== "call.finished") return this.#whole;
    const { fields } = event;
    const isMissing = "outcome" in fields && fields.outcome === "not_found";
    const spec = config.servers.find(({ id }) => id === fields.serverId);
    const isHidden = spec !== undefined && !canSeeServer(config, session, { id: spec.id, spec });
    if (!isHidden && !isMissing) return this.#whole;
    const shown = { ...fields, serverId: null, ...("decision" in fields ? { decision: "none" } : {}) };
    return Frame.numbered(this.seq, this.type, shown);
  }

  #ofTools(fields: Fields<"mcp.tools.discovered">, view: View): Frame {
    let frame = this.#byView.get(view);
    if (frame === undefined) {
      const visible = toolNamesIn(view);
      const tools = fields.tools.filter(({ name }) => visible.has(name));
      frame =
        tools.length === fields.tools.length ? this.#whole : Frame.numbered(this.seq, this.type, { ...fields, tools });
      this.#byView.set(view, frame);
    }
    return frame;
  }

  /** Failures and paths are for the operator alone. */
  #ofBatch(fields: Fields<"skills.batch.imported">, session: Session, { config }: ViewSource): Frame | undefined {
    const imported = fields.imported.filter(({ name }) => canSeeSkill(config, session, name));
    if (imported.length === 0) return undefined;
    const key = JSON.stringify(imported.map(({ skillId }) => skillId));
    let frame = this.#parts.get(key);
    if (frame === undefined) {
      const shown = { imported, failed: [], totalScanned: imported.length };
      this.#parts.set(key, (frame = Frame.numbered(this.seq, this.type, shown)));
    }
    return frame;
  }
}

const toolNames = new WeakMap<View, ReadonlySet<string>>();

function toolNamesIn(view: View): ReadonlySet<string> {
  let known = toolNames.get(view);
  if (known === undefined) toolNames.set(view, (known = new Set(view.tools.map(({ name }) => name))));
  return known;
}
