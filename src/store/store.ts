/** The hub's store: one interface over SQLite or PostgreSQL. Every write is on disk when its promise resolves. */
import type { AuditText, KeptLog } from "../model/audit-blocks.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";

/** A server that was added while a hub ran. */
export interface StoredServer {
  readonly id: string;
  /** Its entry with references as they were written; never a plain secret. */
  readonly entry: JsonObject;
  /** Where it came from: `api`, or the path of the mcp-servers.json that it was taken from. */
  readonly source: string;
  /** ISO times. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Counts changes; the etag is made of it. */
  readonly revision: number;
}

export interface StoredServers {
  list(): Promise<StoredServer[]>;
  get(id: string): Promise<StoredServer | undefined>;
  /** Rejects with `conflict` if the id is taken. */
  insert(server: Pick<StoredServer, "id" | "entry" | "source">): Promise<StoredServer>;
  /** Rejects with `not_found`, or with `conflict` if `revision` is given and another one is there. */
  update(id: string, entry: JsonObject, revision?: number): Promise<StoredServer>;
  remove(id: string, revision?: number): Promise<void>;
}

/** An imported skill; the manifest is the registry's own. */
interface StoredSkill {
  readonly id: string;
  readonly manifest: JsonObject;
}

export interface StoredSkills {
  /** In order of id. */
  list(): Promise<StoredSkill[]>;
  /** Changes whenever anything of them does, whichever process changed it; cheap. */
  stamp(): Promise<string>;
  /** Puts and removes in one transaction. */
  change(put: readonly StoredSkill[], remove: readonly string[]): Promise<void>;
}

/** The files of imported skills, for hubs whose home does not have them; each home has those that it uses. */
export interface StoredSkillFiles {
  put(digest: string, bytes: Uint8Array): Promise<void>;
  get(digest: string): Promise<Uint8Array | undefined>;
  /** Forgets what is not in `kept` and was put before that ISO time. */
  prune(kept: ReadonlySet<string>, before: string): Promise<void>;
}

/**
 * A pinned definition. `scope` is the absolute path of the lock file that it belongs to, whether that exists or not; for one of
 * the home it is `locks/<id>`.
 */
export interface StoredPin {
  readonly server: string;
  readonly kind: "tool" | "prompt" | "resource" | "template" | "instructions";
  /** The server's own name for it, whatever its kind. */
  readonly tool: string;
  readonly fingerprint: string;
  readonly definition: JsonObject;
  /** ISO time. */
  readonly pinnedAt: string;
}

export interface StoredPins {
  list(scope: string): Promise<StoredPin[]>;
  /** Changes whenever anything of the scope does, whichever process changed it. */
  stamp(scope: string): Promise<string>;
  /** Replaces, adds and removes in one transaction. */
  change(
    scope: string,
    put: readonly StoredPin[],
    remove: readonly Pick<StoredPin, "server" | "kind" | "tool">[],
  ): Promise<void>;
}

/** The lists of a server as it last gave them: a text of whoever put it, without secrets. */
export interface StoredList {
  readonly server: string;
  /** A digest of the spec that it was started from. */
  readonly spec: string;
  readonly lists: string;
}

export interface StoredLists {
  get(keys: readonly Omit<StoredList, "lists">[]): Promise<StoredList[]>;
  /** Of different servers, or of a server with different specs. */
  put(entries: readonly StoredList[]): Promise<void>;
  /** Forgets all of a server. */
  remove(server: string): Promise<void>;
  /** Forgets those that were last put before. */
  prune(before: string): Promise<void>;
}

export type ApprovalStatus = "pending" | "answered" | "expired";

export interface StoredApproval {
  readonly id: string;
  /** The hub that asked: a random id of the process. What another hub left pending is expired. */
  readonly hub: string;
  readonly status: ApprovalStatus;
  /** The masked AskRequest. */
  readonly request: JsonObject;
  readonly askedAt: string;
  readonly answer: string | null;
  readonly answeredAt: string | null;
  readonly answeredBy: string | null;
}

/** Pages go by an opaque cursor, the newest first. */
export interface Page<Entry> {
  readonly entries: Entry[];
  readonly total: number;
  readonly nextCursor?: string;
}

export interface PageOptions {
  readonly limit: number;
  readonly cursor?: string;
}

export interface StoredApprovals {
  /** In one transaction. Of several with one id the last counts. */
  put(...approvals: readonly StoredApproval[]): Promise<void>;
  get(id: string): Promise<StoredApproval | undefined>;
  list(options: PageOptions & { readonly status?: ApprovalStatus }): Promise<Page<StoredApproval>>;
  /** Marks as expired what hubs that are gone left pending. */
  expire(livingHubs: readonly string[]): Promise<number>;
  /** Forgets what was asked before. */
  prune(before: string): Promise<number>;
}

export interface StoredSession {
  readonly id: string;
  readonly hub: string;
  readonly door: string;
  readonly role: string | null;
  readonly user: string | null;
  readonly client: JsonObject | null;
  readonly owner: boolean;
  readonly openedAt: string;
  readonly closedAt: string | null;
  readonly lastCallAt: string | null;
  readonly calls: number;
  readonly taint: JsonObject | null;
}

export interface StoredSessions {
  /** Many at once: the hub writes them in batches. */
  put(sessions: readonly StoredSession[]): Promise<void>;
  get(id: string): Promise<StoredSession | undefined>;
  list(
    options: PageOptions & { readonly state?: "open" | "closed"; readonly door?: string },
  ): Promise<Page<StoredSession>>;
  /** Closes what hubs that are gone left open. */
  closeLeftOver(livingHubs: readonly string[], closedAt: string): Promise<number>;
  prune(before: string): Promise<number>;
}

/** A call that ended, as it is counted. */
export interface CountedCall {
  readonly time: string;
  readonly callId: string | null;
  readonly server: string | null;
  readonly name: string | null;
  readonly client: string | null;
  readonly role: string | null;
  readonly outcome: string | null;
  readonly kind: string;
  /** Without the time in which it waited for approval. */
  readonly durationMs: number;
  readonly resultBytes: number;
  /** Held for approval, and to be made again. */
  readonly isWaiting: boolean;
  /** Codes of what the guard found in its result. */
  readonly findings: readonly string[];
}

/** Counts of calls; every call is in `calls`, and in one of the others unless it went well. */
export interface CallSum {
  calls: number;
  failed: number;
  refused: number;
  waiting: number;
  cancelled: number;
  /** Of calls that ran: how many in each bucket of milliseconds and of bytes, without empty ones at the end. */
  durations: number[];
  sizes: number[];
  slowest: { readonly ms: number; readonly callId: string } | null;
  last: { readonly at: string; readonly callId: string } | null;
}

export interface CallSumRow {
  /** Beginning of the step, in seconds since 1970. */
  readonly at: number;
  /** A JSON array: the kind and its names. */
  readonly subject: string;
  readonly sum: CallSum;
}

export interface CallSumsQuery {
  /** Seconds. */
  readonly step: number;
  readonly since: number;
  /** Whole subjects, or what those that are wanted begin with. `name`: only those that have this among their names. */
  readonly subjects: readonly { readonly prefix: string; readonly name?: string | undefined }[];
}

export interface StoredAudit extends KeptLog {
  /** Puts the lines behind those that are there of their file. False if these are not `firstLine` lines; then nothing changes. */
  append(block: AuditText): Promise<boolean>;
  /**
   * Adds some of the calls that were appended since to the sums, each once, whoever does it; `read` returns the call whose end a
   * line is. Resolves with false if none is left.
   */
  sumUpSome(read: (line: string) => CountedCall | undefined, now: number): Promise<boolean>;
  sums(query: CallSumsQuery): Promise<CallSumRow[]>;
  /** Forgets sums that no range reaches any more, and those older than `maxDays`. */
  pruneSums(now: number, maxDays?: number): Promise<void>;
  removeFiles(files: readonly string[]): Promise<void>;
}

/** Encrypted with AES-256-GCM; the store never sees the text. */
export interface SealedValue {
  readonly name: string;
  /** All base64. */
  readonly nonce: string;
  readonly ciphertext: string;
  readonly tag: string;
  /** Which key it was sealed with. */
  readonly keyId: string;
  readonly updatedAt: string;
}

export interface SealedValues {
  get(name: string): Promise<SealedValue | undefined>;
  names(): Promise<string[]>;
  put(value: SealedValue): Promise<void>;
  remove(name: string): Promise<boolean>;
}

/** A conversation with the built-in agent. */
export interface StoredConversation {
  readonly id: string;
  readonly title: string | null;
  /** The door that began it: `acp`, `cli`, `library`. */
  readonly door: string;
  readonly cwd: string | null;
  readonly user: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Facts that the agent keeps about it, such as mode and model. Never a plaintext secret. */
  readonly facts: JsonObject;
}

export interface ConversationChange {
  readonly title?: string | null;
  readonly cwd?: string;
  readonly facts?: Readonly<JsonObject>;
}

export interface StoredConversations {
  get(id: string): Promise<StoredConversation | undefined>;
  /** Those that were last used first. */
  list(options: PageOptions & { readonly cwd?: string; readonly door?: string }): Promise<Page<StoredConversation>>;
  /** Makes it or replaces what is there; its messages stay. */
  put(conversation: StoredConversation): Promise<void>;
  /**
   * In one transaction: facts are added to those that are there by then, undefined takes one out. Resolves with what is there
   * afterwards; rejects with `not_found` if it was removed.
   */
  change(id: string, change: ConversationChange): Promise<StoredConversation>;
  /** Its messages in their order. */
  messages(id: string): Promise<JsonObject[]>;
  /**
   * At the end; several in one transaction, which also counts as its last use. Rejects with `conflict` if there are not
   * `after` messages: another process wrote; with `not_found` if it was removed.
   */
  append(id: string, after: number, messages: readonly JsonObject[]): Promise<void>;
  /** With its messages. False if it was not there. */
  remove(id: string): Promise<boolean>;
  /** Forgets those that were last used before. */
  prune(before: string): Promise<number>;
}

/** The origins of what a conversation or caller has read and anyone may have written, or of what is in a memory-like server. */
export interface StoredTaint {
  /** Such as `conversation …`, `caller …` or `memory …`. */
  readonly key: string;
  readonly origins: readonly JsonObject[];
  /** Milliseconds since 1970; what was read before counts no more. */
  readonly clearedAt: number;
  readonly updatedAt: string;
}

export interface StoredTaints {
  get(key: string): Promise<StoredTaint | undefined>;
  /** Those whose key begins like this. */
  list(prefix: string): Promise<StoredTaint[]>;
  /** In one transaction: what it was becomes what it is now. */
  change(
    key: string,
    change: (before: StoredTaint | undefined) => Pick<StoredTaint, "origins" | "clearedAt">,
  ): Promise<void>;
  remove(key: string): Promise<void>;
  /** Forgets those with such a key that were last changed before. */
  prune(prefix: string, before: string): Promise<number>;
}

export interface Settings {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
  /** Sets it unless it is there; resolves with what is there then. */
  setOnce(key: string, value: string): Promise<string>;
  /** Sets it if `before` is what is there, undefined for nothing. False if something else is. */
  exchange(key: string, before: string | undefined, after: string): Promise<boolean>;
  /** False if it was not there. */
  remove(key: string): Promise<boolean>;
}

/** The use of limits over all processes, counted for each of the last spans of time. */
export interface StoredLimits {
  /** Takes as much of `want` as the limit leaves in the spans from `since` on, in one step. */
  take(want: WantedTokens): Promise<GivenTokens>;
  /** Returns tokens that were taken in that span and not used. */
  giveBack(key: string, span: number, tokens: number): Promise<void>;
  /** Forgets spans before this one. */
  prune(before: number): Promise<void>;
}

interface WantedTokens {
  readonly key: string;
  /** A number of the present span, the same for every process whose clock agrees. */
  readonly span: number;
  readonly since: number;
  readonly limit: number;
  readonly want: number;
}

interface GivenTokens {
  readonly given: number;
  /** The first span in which anything was taken. */
  readonly oldest: number;
}

export type ChangedTopic = "servers" | "skills" | "pins" | "approvals" | "settings" | "taints";

/** Written in the same transaction as the change itself. */
export interface StoreChange {
  readonly revision: number;
  readonly topic: ChangedTopic;
  /** The id of what changed, or the scope of pins; `*` where it may be anything of the topic. */
  readonly subject: string;
  /** The store object that wrote it: `store.id`. */
  readonly writer: string;
}

/** Where a database is: what another thread needs to open it too. The URL has its password, and is shown to no one. */
export type StoreAddress = { readonly file: string } | { readonly url: string };

export interface Store {
  readonly kind: "sqlite" | "postgres";
  /** Of this object, random. */
  readonly id: string;
  /** A path or an address without its password, for messages. */
  readonly place: string;
  readonly address: StoreAddress;
  /** Why the database cannot be reached, by its last response; undefined if it can. */
  readonly trouble?: string | undefined;
  readonly servers: StoredServers;
  readonly skills: StoredSkills;
  readonly skillFiles: StoredSkillFiles;
  readonly pins: StoredPins;
  readonly lists: StoredLists;
  readonly approvals: StoredApprovals;
  readonly sessions: StoredSessions;
  readonly audit: StoredAudit;
  readonly sealed: SealedValues;
  readonly conversations: StoredConversations;
  readonly taints: StoredTaints;
  readonly settings: Settings;
  readonly limits: StoredLimits;
  /**
   * Changes that other processes make, in order of revision, soon after they are made; from the opening of the store on, if
   * there was no listener before. Changes of this object are not reported.
   */
  follow(listener: (change: StoreChange) => void): () => void;
  /** A whole copy as one SQLite file, taken while everything runs. */
  backup(file: string): Promise<void>;
  /** It will be closed soon: from a few seconds on, a database that does not answer is waited for no longer. */
  endSoon?(): void;
  close(): Promise<void>;
}

/** The parts of a store that many calls write to. */
export interface BusyStore extends Pick<Store, "audit" | "close"> {
  readonly sessions: Pick<StoredSessions, "put">;
}

// For every implementation that keeps conversations.

export function conversationNotFoundError(id: string): ToolcribError {
  return new ToolcribError("not_found", `The conversation ${id} is not there, or no longer.`, {
    hint: "It was removed. Begin a new one.",
    details: { conversation: id },
  });
}

export function conversationConflictError(id: string, known: number, found: number): ToolcribError {
  return new ToolcribError(
    "conflict",
    `The conversation ${id} was continued elsewhere: it has ${found} messages, and ${known} are known here.`,
    { hint: "Open it again to go on with what was said there.", details: { conversation: id, known, found } },
  );
}

/** The facts with further ones; undefined removes one. */
export function mergeFacts(before: Readonly<JsonObject>, more: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.entries({ ...before, ...more }).filter(([, value]) => value !== undefined));
}
