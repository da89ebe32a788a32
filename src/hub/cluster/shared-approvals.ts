/** Approvals that wait at other nodes: they are listed and reported here, and answers are forwarded to their node. */
import type { CallReply, Cluster, IncomingCall } from "../../cluster/cluster.ts";
import type { AskAnswer, AskOutcome, AskRequest } from "../../model/decision.ts";
import type { Emitter } from "../../base/emitter.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Answerer } from "../call/approvals.ts";
import type { HubEvents } from "../hub-events.ts";

const TOPIC = "approvals";
const ANSWER_TIMEOUT_MS = 10_000;
/** An answer may arrive before the list that still has its request. */
const MAX_SETTLED = 1000;

export interface SharedApprovalsOptions {
  readonly cluster: Cluster;
  readonly events: Emitter<HubEvents>;
  /** Requests that wait at this node. */
  readonly own: () => readonly AskRequest[];
  /** Answers a request of this node; rejects with `not_found` if it does not wait. */
  readonly answerOwn: (id: string, answer: AskAnswer, by: Answerer) => Promise<unknown>;
  /** Removes secrets before anything leaves the node. */
  readonly mask: <Value>(value: Value) => Value;
}

interface RemoteRequest {
  readonly node: string;
  readonly request: AskRequest;
}

export class SharedApprovals {
  readonly #options: SharedApprovalsOptions;
  readonly #others = new Map<string, RemoteRequest>();
  readonly #settled = new Set<string>();
  readonly #stops: (() => void)[];

  constructor(options: SharedApprovalsOptions) {
    const { cluster, events } = options;
    this.#options = options;
    this.#stops = [
      cluster.serve(addressOf(cluster.node.id), (call) => this.#serve(call)),
      cluster.subscribe(TOPIC, (message, from) => void this.#heard(message, from)),
      cluster.on("nodes", () => this.#renew()),
      cluster.on("up", () => this.#renew()),
      cluster.on("gone", ({ node }) => this.#forget(node)),
      events.on("ask", ({ id, node }) => {
        if (node === undefined) cluster.publish(TOPIC, { asked: id });
      }),
      events.on("answer", ({ request: { id, node }, answer }) => {
        if (node === undefined) cluster.publish(TOPIC, { answered: id, answer });
      }),
    ];
    this.#renew();
  }

  /** Those of other nodes. */
  pending(): AskRequest[] {
    return [...this.#others.values()].map(({ request }) => request);
  }

  /** False if no other node has that id; rejects if it no longer waits, or its node cannot be reached. */
  async answer(id: string, answer: AskAnswer, by: Answerer): Promise<boolean> {
    const found = this.#others.get(id);
    if (this.#settled.has(id)) throw noLongerPending(id);
    if (found === undefined) return false;
    const { head } = await this.#options.cluster.call(addressOf(found.node), {
      head: { do: "answer", id, answer, ...by },
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    if (head["answered"] !== true) throw noLongerPending(id);
    return true;
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  async #serve({ head }: IncomingCall): Promise<CallReply> {
    const { own, answerOwn, mask } = this.#options;
    if (head["do"] === "list") return { head: {}, body: Buffer.from(JSON.stringify(mask(own()))) };
    const { id, answer, user, door, caller } = head;
    if (typeof id !== "string" || typeof answer !== "string") {
      throw new ToolcribError("invalid_arguments", "Another node sent a request that this node does not know.");
    }
    try {
      // An unknown answer counts as no, as everywhere.
      const by = { user: textOrNull(user), door: textOrNull(door), caller: textOrNull(caller) ?? undefined };
      await answerOwn(id, answer as AskAnswer, by);
      return { head: { answered: true } };
    } catch (error) {
      if (error instanceof ToolcribError && error.code === "not_found") return { head: { answered: false } };
      throw error;
    }
  }

  async #heard(message: JsonObject, from: string): Promise<void> {
    if (typeof message["asked"] === "string") return this.#list(from);
    const { answered: id, answer } = message;
    if (typeof id === "string") this.#drop(id, answer as AskOutcome);
  }

  #renew(): void {
    const { cluster } = this.#options;
    for (const { id } of cluster.nodes()) if (id !== cluster.node.id) void this.#list(id);
  }

  async #list(node: string): Promise<void> {
    const { cluster, events } = this.#options;
    let requests: readonly AskRequest[];
    try {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
      const { body } = await cluster.call(addressOf(node), { head: { do: "list" }, signal });
      requests = parseRequests(body);
    } catch {
      // The next list has it: when the node is back, or asks again.
      return;
    }
    const name = cluster.nodes().find(({ id }) => id === node)?.name ?? node;
    const listed = new Set(requests.map(({ id }) => id));
    for (const [id, other] of this.#others) if (other.node === node && !listed.has(id)) this.#drop(id, "withdrawn");
    for (const request of requests) {
      if (this.#others.has(request.id) || this.#settled.has(request.id)) continue;
      const shown = { ...request, node: name };
      this.#others.set(request.id, { node, request: shown });
      events.emit("ask", shown);
    }
  }

  #forget(node: string): void {
    for (const [id, other] of this.#others) {
      if (other.node !== node) continue;
      this.#drop(id, "withdrawn");
      // A node that was only cut off comes back with its requests.
      this.#settled.delete(id);
    }
  }

  #drop(id: string, answer: AskOutcome): void {
    this.#settled.add(id);
    const [oldest] = this.#settled.size > MAX_SETTLED ? this.#settled : [];
    if (oldest !== undefined) this.#settled.delete(oldest);
    const found = this.#others.get(id);
    if (found === undefined) return;
    this.#others.delete(id);
    this.#options.events.emit("answer", { request: found.request, answer });
  }
}

function noLongerPending(id: string): ToolcribError {
  return new ToolcribError("not_found", `The call with the id ${id} is no longer waiting for an answer.`, {
    hint: "It was answered or withdrawn, or it timed out.",
  });
}

function addressOf(node: string): string {
  return `node.${node}.approvals`;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Nodes may have different versions: requests without the parts that are shown are left out. */
function parseRequests(body: Uint8Array | undefined): AskRequest[] {
  const value: unknown = body === undefined ? [] : JSON.parse(Buffer.from(body).toString("utf8"));
  return Array.isArray(value) ? value.filter(isRequest) : [];
}

function isRequest(value: unknown): value is AskRequest {
  if (!isJsonObject(value)) return false;
  const { id, name, reason, expiresAt, session, origin, rule, rules, arguments: args } = value;
  const texts = [id, name, reason, expiresAt].every((text) => typeof text === "string");
  return texts && [session, origin, rule, args].every(isJsonObject) && Array.isArray(rules);
}
