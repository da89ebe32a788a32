/** RemoteSlot: a slot that another node holds, seen and called from here. */
import type { CallReply, CallRequest, Cluster, LeaseState } from "../../cluster/cluster.ts";
import type { Clock } from "../../model/clock.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Progress, Result } from "../../model/protocol.ts";
import { calledName, type ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { SessionContext } from "../../model/session.ts";
import { type Definitions, NO_DEFINITIONS, type Use, type UseContext } from "../../model/source.ts";
import type { SkillOffer } from "../skill-offer.ts";
import { answerQuestion } from "./asked-client.ts";
import { type Description, readBody, readError, sentSession, sentUse, writeBody } from "./messages.ts";
import { refusedCall } from "./not-taken.ts";
import type { Place } from "./place.ts";
import { slotAddress, type SlotFacts, slotFacts } from "./slot-names.ts";

export interface RemoteSlotOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly word: string;
  readonly slot: number;
  readonly lease: LeaseState;
  readonly spec: () => ServerSpec;
  readonly hubSession: SessionContext;
  /** Users of sessions here: what the server tells them is asked for too. */
  readonly users: () => string[];
  /** It is described, for the first time or anew. */
  readonly onChange: () => void;
}

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2000;

export class RemoteSlot implements Place {
  readonly slot: number;
  readonly term: number;
  readonly node: string;
  readonly #options: RemoteSlotOptions;
  readonly #address: string;
  #facts: SlotFacts;
  #described: Description | undefined;
  #describing = false;
  #again = false;
  #over = false;
  #stopTimer: () => void = () => {};

  constructor(options: RemoteSlotOptions) {
    this.#options = options;
    const { word, slot, lease } = options;
    this.slot = slot;
    this.term = lease.term;
    this.node = lease.holder;
    this.#address = slotAddress(word, slot, lease.term);
    this.#facts = slotFacts(lease.value);
    this.describe();
  }

  get mark(): string {
    return `${this.node} ${this.term} ${this.#facts.generation}`;
  }

  get digest(): string {
    return this.#facts.digest;
  }

  get state(): ServerState | undefined {
    return this.#described?.state;
  }

  /** A node that has gone may still have its lease for a moment: a call to it would be in doubt for nothing. */
  get isOpen(): boolean {
    return !this.#over && this.#options.cluster.nodes().some(({ id }) => id === this.node);
  }

  info(): ServerInfo | undefined {
    return this.#described?.info;
  }

  definitions(): Definitions {
    return this.#described?.definitions ?? NO_DEFINITIONS;
  }

  instructions(user?: string): string | null {
    const own = user === undefined ? undefined : this.#described?.userInstructions[user];
    return own ?? this.#described?.instructions ?? null;
  }

  /** The lease has another value. */
  renew({ value }: LeaseState): void {
    const facts = slotFacts(value);
    const isNew = facts.revision !== this.#facts.revision;
    this.#facts = facts;
    if (isNew) this.describe();
  }

  end(): void {
    this.#over = true;
    this.#stopTimer();
  }

  describe(): void {
    this.#again = true;
    this.#stopTimer();
    if (!this.#describing) void this.#describe(FIRST_RETRY_MS);
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { spec, hubSession } = this.#options;
    const { head, body } = await this.#call({
      head: { method: "run" },
      body: writeBody(sentUse(use, context, hubSession)),
      signal: context.signal,
      onEvent: (event, payload) => tellCaller(context, event, payload),
      onQuestion: (question, signal) => answerQuestion(calledName(spec()), context.client, question, signal),
    }).catch((error: unknown) => {
      throw refusedCall(error);
    });
    if (isJsonObject(head["error"])) throw readError(head["error"]);
    return readBody<Result>(body);
  }

  async refresh(): Promise<void> {
    await this.#call({ head: { method: "refresh" } });
  }

  rootsChanged(): void {
    this.#tell({ method: "roots-changed" });
  }

  setLogLevel(level: string): void {
    this.#tell({ method: "log-level", level });
  }

  startSession(session: SessionContext): void {
    this.#tell({ method: "start-session" }, sentSession(session, this.#options.hubSession));
  }

  endSession(sessionId: string): void {
    this.#tell({ method: "end-session", session: sessionId });
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#tell({ method: "resume" }, { session: sentSession(session, this.#options.hubSession), uris });
  }

  async connectUser(user: string): Promise<ServerInfo> {
    return readBody((await this.#call({ head: { method: "connect-user", user } })).body);
  }

  skillOffer(): SkillOffer | undefined {
    if (this.#described?.offersSkills !== true) return undefined;
    const ask = async (head: JsonObject): Promise<Uint8Array> => {
      const reply = await this.#call({ head });
      if (isJsonObject(reply.head["error"])) throw readError(reply.head["error"]);
      return reply.body ?? new Uint8Array();
    };
    return {
      list: async () => readBody(await ask({ method: "skills" })),
      read: (uri, size) => ask({ method: "skill-file", uri, size }),
    };
  }

  /** What does no harm if it does not arrive: a new holder is told again. */
  #tell(head: JsonObject, body?: unknown): void {
    void this.#call({ head, ...(body === undefined ? {} : { body: writeBody(body) }) }).catch(() => {});
  }

  #call(request: CallRequest): Promise<CallReply> {
    return this.#options.cluster.call(this.#address, request);
  }

  async #describe(retryMs: number): Promise<void> {
    this.#describing = true;
    try {
      while (this.#again && !this.#over) {
        this.#again = false;
        const { body } = await this.#call({ head: { method: "describe" }, body: writeBody(this.#options.users()) });
        if (this.#over) return;
        this.#described = readBody<Description>(body);
        this.#options.onChange();
      }
    } catch {
      this.#again = true;
      // The holder may not serve it yet; if it has gone, its lease soon has.
      const next = Math.min(retryMs * 2, LAST_RETRY_MS);
      if (!this.#over) this.#stopTimer = this.#options.clock.after(retryMs, () => void this.#describe(next));
    } finally {
      this.#describing = false;
    }
  }
}

function tellCaller(context: UseContext, event: JsonObject, payload: Uint8Array | undefined): void {
  if (event["kind"] === "progress") context.onProgress?.(readBody<Progress>(payload));
  if (event["kind"] === "notice") context.onNotice?.(String(event["method"]), readBody<JsonObject>(payload));
}
