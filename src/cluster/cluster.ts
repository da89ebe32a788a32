/**
 * A node's view of its cluster: the nodes, leases, messages and calls. The engine behind it is NATS; nothing above
 * this folder knows that.
 */
import { asToolcribError, ERROR_TABLE, type ErrorCode, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";

export interface ClusterNode {
  /** Random, new with each start of the process. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** Published by the node itself, such as its version and how many servers it runs. */
  readonly facts: JsonObject;
}

export interface ClusterEvents {
  /** NATS answers, for the first time or again. */
  up: undefined;
  /** It does not. Calls in progress were ended; leases expire unless it comes back in time. */
  down: { readonly reason: string };
  /** The list of living nodes is another one. */
  nodes: undefined;
  /** A node has gone: it said so, or said nothing for too long. */
  gone: { readonly node: string };
  /** Something came that no node has signed, or a copy of something that one has; it was dropped. At most once a minute. */
  forged: { readonly subject: string; readonly count: number };
  warning: string;
}

export interface Cluster {
  /** This node. */
  readonly node: ClusterNode;
  /** Subjects and buckets of one cluster begin with it. */
  readonly name: string;
  readonly isUp: boolean;
  /** A key that all nodes have and no one else, for one purpose. */
  keyFor(purpose: string): Buffer;
  on<Name extends keyof ClusterEvents>(name: Name, listener: (event: ClusterEvents[Name]) => void): () => void;
  /** Those that are alive, this one included, in the order of their ids. */
  nodes(): readonly ClusterNode[];
  setFacts(facts: JsonObject): void;
  /** To every node that listens, this one not included. Lost where a node is away: for news, not for state. */
  publish(topic: string, message: JsonObject): void;
  subscribe(topic: string, listener: (message: JsonObject, from: string) => void): () => void;
  /** Answers calls to an address, which are words with dots in between; the returned function ends it. */
  serve(address: string, handler: CallHandler): () => void;
  /**
   * One call to whoever serves the address. Rejects with ToolcribError: what the handler threw, with `details.sent: false`
   * where it cannot have begun (no node serves it, or it was refused), and `server_unavailable` without that where the
   * node that had it has gone or cannot be reached: whether it ran is not known then, and it must not be sent again.
   */
  call(address: string, request: CallRequest): Promise<CallReply>;
  readonly leases: Leases;
  /** A small map that all nodes see; changes arrive soon after they are made. */
  map(name: string, options?: SharedMapOptions): Promise<SharedMap>;
  /** Gives back every lease, says good-bye and closes the connection. Never rejects. */
  close(): Promise<void>;
}

export interface CallRequest {
  readonly head: JsonObject;
  readonly body?: Uint8Array;
  readonly signal?: AbortSignal;
  /** Events of the handler, in their order. */
  readonly onEvent?: (event: JsonObject, body: Uint8Array | undefined) => void;
  /** Answers what the handler asks; without it each question is refused. */
  readonly onQuestion?: (question: JsonObject, signal: AbortSignal) => Promise<JsonObject>;
}

export interface CallReply {
  readonly head: JsonObject;
  readonly body?: Uint8Array;
}

export interface IncomingCall {
  readonly head: JsonObject;
  readonly body?: Uint8Array;
  /** The node that calls. */
  readonly from: string;
  /** The caller gave up, or has gone. */
  readonly signal: AbortSignal;
  /** In order; resolves when the link has taken it, which slows a fast sender down. */
  emit(event: JsonObject, body?: Uint8Array): Promise<void>;
  ask(question: JsonObject, signal: AbortSignal): Promise<JsonObject>;
}

/** An error that it throws reaches the caller as a ToolcribError with the same code, message, hint and details. */
export type CallHandler = (call: IncomingCall) => Promise<CallReply>;

/** One holder at a time, for as long as it renews. */
export interface Leases {
  /** Every lease that this node has seen and that has not run out, by key. */
  all(): ReadonlyMap<string, LeaseState>;
  /** A lease was taken, given back, lost, or its value changed. */
  onChange(listener: (key: string) => void): () => void;
  /**
   * Undefined if another node has it, or could still have it: in the first `leaseMs` after NATS began to keep leases, and again
   * after it has lost them, no claim succeeds, and each returns when that time is over. It is renewed until it is released or lost.
   */
  claim(key: string, value: JsonObject): Promise<Lease | undefined>;
}

export interface LeaseState {
  readonly key: string;
  /** Id of the node. */
  readonly holder: string;
  /** Grows with each new holder: what was agreed with one term does not count in another. */
  readonly term: number;
  readonly value: JsonObject;
}

export interface Lease extends LeaseState {
  /** Aborted at the moment from which another node may hold it: from then on nothing may be done in its name. */
  readonly lost: AbortSignal;
  /** Whether it still holds, by this node's own clock; to be asked right before each act. */
  readonly holds: boolean;
  setValue(value: JsonObject): Promise<void>;
  release(): Promise<void>;
}

export interface SharedMapOptions {
  /** Entries that were not written for this long disappear. */
  readonly ttlMs?: number;
}

export interface SharedMap {
  /** As far as this node has heard. */
  get(key: string): JsonObject | undefined;
  entries(): ReadonlyMap<string, JsonObject>;
  put(key: string, value: JsonObject): Promise<void>;
  /** Writes it only if it is there: what was taken away or has run out does not come back, and this says false. */
  renew(key: string, value: JsonObject): Promise<boolean>;
  /** True for one caller in the whole cluster: whoever takes it away. */
  take(key: string): Promise<boolean>;
  /** The same with what was there, which this node may not have heard of. */
  takeOut(key: string): Promise<JsonObject | undefined>;
  onChange(listener: (key: string) => void): () => void;
}

/**
 * Any text as one word of a subject or key: NATS cuts at dots, reads `*` and `>` as wildcards and allows no spaces. Injective,
 * so that two names never share an address: what is not a letter, digit or dash becomes `_` and the two hex digits of each
 * of its bytes.
 *
 * `addressWord("a.b") === "a_2eb"`
 */
export function subjectToken(text: string): string {
  if (text === "") return "_";
  return text.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** The text that `addressWord` made the word of. */
export function textOfToken(word: string): string {
  if (word === "_") return "";
  try {
    return decodeURIComponent(word.replaceAll("_", "%"));
  } catch {
    // Not one of ours.
    return word;
  }
}

/** An error as one node sends it to another. */
export function encodeError(thrown: unknown): JsonObject {
  return JSON.parse(JSON.stringify(asToolcribError(thrown).toObject()));
}

export function decodeError(sent: unknown): ToolcribError {
  if (!isJsonObject(sent)) return new ToolcribError("internal", "The other node failed without a reason.");
  const { code, message, hint, details } = sent;
  return new ToolcribError(isErrorCode(code) ? code : "internal", typeof message === "string" ? message : "", {
    hint: typeof hint === "string" ? hint : undefined,
    details: isJsonObject(details) ? details : undefined,
  });
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
}
