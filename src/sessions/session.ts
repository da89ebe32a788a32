import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import { Emitter } from "../base/emitter.ts";
import { ChurnSet } from "../base/maps.ts";
import type { ClientInfo } from "../model/client-info.ts";
import type { AskCallback } from "../model/decision.ts";
import type { Root } from "../model/protocol.ts";
import { ToolcribError } from "../model/errors.ts";
import { parseEntry, type SessionRules } from "../model/tool-rules.ts";
import type { ClientEnv, ClientSide, ElicitationCallback, SamplingCallback, SessionContext } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import { rootFor } from "../upstream/server-requests.ts";
import { KeptResults } from "./kept-results.ts";
import { MountedParts } from "./mounted-parts.ts";
import { type ClearedBy, type Taint, type TaintOrigin, TaintScope } from "./taint.ts";
import {
  NO_PARTS,
  type SessionHost,
  type SessionPartEvents,
  type SessionPartLimits,
  type SessionParts,
  type SessionServers,
} from "./session-parts.ts";

export interface SessionOptions {
  /**
   * The door that opens it; for audit and messages. `library` if absent: its caller is this program, and gets the `details`
   * of in-process tools. What leaves through any other door is without them.
   */
  readonly door?: string;
  /** Narrows the session to this role. An unknown role sees nothing. */
  readonly role?: string;
  /** A view of the config, through which it sees the tools. An unknown view shows nothing. */
  readonly view?: string;
  /** The authenticated user; servers with `isolation: "user"` are held once for each. */
  readonly user?: string;
  /** The program behind it, in its own words. */
  readonly clientInfo?: ClientInfo;
  /** Variables of that program's environment, for servers with `isolation: "session"`. */
  readonly clientEnv?: ClientEnv;
  /** True for the user who runs the hub. Sessions opened in-process are, unless they name a user or say otherwise. */
  readonly owner?: boolean;
  /** Whether an answer "always" from this session's client applies to all sessions; true for owners if absent. */
  readonly decidesForAll?: boolean;
  /** Narrows what is left after the rules of hub, server and role. */
  readonly rules?: SessionRules;
  /** Offered to servers as a root. */
  readonly workspaceDir?: string;
  /** Offers it only to servers that the session brings, and to those whose `roots` is `"session"`. */
  readonly rootsOnRequest?: boolean;
  readonly onSample?: SamplingCallback;
  readonly onElicit?: ElicitationCallback;
  /** Approves calls that an `ask` rule holds. Without it they are denied. */
  readonly onAsk?: AskCallback;
  /**
   * Whether an operator can answer for its calls later. A call that needs approval where no one can be asked is then held
   * and refused, and the same call passes once it is approved.
   */
  readonly holdsCalls?: boolean;
  /** The key of the caller behind it, as the door that opened it knows them: who may not approve its calls. */
  readonly caller?: string;
  /** The same for sessions at other hubs of a cluster that stand for the same caller: what one may do, all may. */
  readonly sharedKey?: string;
  /**
   * The id of a conversation: sessions of one conversation of one user share what they have read that anyone may have written,
   * also after a restart and at other hubs.
   */
  readonly conversation?: string;
  /** A session that it belongs to, as that of a sub-agent does: they share the same. */
  readonly parent?: Session;
  /**
   * A session that it joins, as another program of an editor's user does: it has the servers, tools, rules and taint of that
   * session, and ends with it. Who calls, who is asked and what is granted is its own.
   */
  readonly within?: Session | undefined;
  /** Those of another session of the same client: what one was given links to, both can read. */
  readonly links?: ResourceLinks;
  /** The name of a kept result in its URI, by the id of its call; that id if absent. */
  readonly resultName?: (callId: string) => string;
  /** Servers that only this session has, as entries of any dialect. Opening is a promise then, which waits for them. */
  readonly servers?: SessionServers;
  /** In-process tools that only this session has. */
  readonly tools?: readonly Tool[];
  /** Narrows how many servers and tools it may bring. */
  readonly limits?: SessionPartLimits;
  /** Whether programs that its servers name are started; true for owners if absent. */
  readonly mayRunCommands?: boolean;
  /**
   * Whether its servers are named by the program that runs the hub rather than by a client: references in them are looked up,
   * and they may be at any port of this machine. True for an owner's session that names no door.
   */
  readonly fromProgram?: boolean;
  /** Whether it is left out of lists of sessions, as the visits of an operator's own page are. */
  readonly unlisted?: boolean | undefined;
}

const LIBRARY_DOOR = "library";
const EDITOR_DOOR = "acp";

/** The scope of one client: its role, rules, own servers and tools, calls and taint. */
export class Session implements SessionContext {
  readonly id = randomUUID();
  readonly door: string;
  readonly owner: boolean;
  readonly decidesForAll: boolean;
  readonly mayRunCommands: boolean;
  readonly fromProgram: boolean;
  declare readonly role?: string;
  declare readonly view?: string;
  declare readonly user?: string;
  /** More may become known of it later, such as its process. */
  declare clientInfo?: ClientInfo;
  declare readonly clientEnv?: ClientEnv;
  declare readonly sharedKey?: string;
  declare readonly conversation?: string;
  declare readonly workspaceDir?: string;
  declare readonly onSample?: SamplingCallback;
  declare readonly onElicit?: ElicitationCallback;
  declare readonly onAsk?: AskCallback;
  declare readonly holdsCalls?: boolean;
  declare readonly caller?: string;
  declare readonly unlisted?: boolean;
  readonly roots: readonly Root[];
  readonly client: ClientSide;
  readonly results: KeptResults;
  /** Links it got to resources that no server lists. */
  readonly links: ResourceLinks = new ResourceLinks();
  /** Approvals for the session: the list that asked, and the definition that was shown. */
  readonly granted = new Set<string>();
  /** The calls in progress; they end with it. */
  readonly running = new ChurnSet<Pick<AbortController, "abort">>();
  /** Those of `own`, for who listens to sessions that may never bring anything. */
  readonly ownEvents: Emitter<SessionPartEvents>;
  #taintScope = new TaintScope();
  #telling: Promise<void> | undefined;
  readonly #closed = new AbortController();
  readonly #onClose: (session: Session) => void;
  readonly #host: SessionHost | undefined;
  readonly #within: Session | undefined;
  readonly #limits: SessionPartLimits;
  readonly #rules = new Map<string, SessionRules>();
  #allRules: SessionRules | undefined;
  #viewKey: string | undefined;
  #parts: MountedParts | undefined;
  #over: Promise<void> = Promise.resolve();

  /** @param host The hub's part in what the session brings; without it, it can bring nothing. */
  constructor(options: SessionOptions = {}, onClose: (session: Session) => void = () => {}, host?: SessionHost) {
    const {
      door = LIBRARY_DOOR,
      owner = options.user === undefined,
      within,
      workspaceDir = within?.workspaceDir,
      decidesForAll = owner,
      mayRunCommands = owner,
      fromProgram = owner && options.door === undefined,
      limits = {},
      rules,
      resultName,
      rootsOnRequest: _rootsOnRequest,
      parent: _parent,
      servers: _servers,
      tools: _tools,
      ...given
    } = options;
    this.door = door;
    this.owner = owner;
    this.decidesForAll = decidesForAll;
    this.mayRunCommands = mayRunCommands;
    this.fromProgram = fromProgram;
    this.#limits = limits;
    this.#host = host;
    this.#within = within;
    this.ownEvents = within?.ownEvents ?? new Emitter();
    this.results = new KeptResults(undefined, resultName);
    this.narrow("", rules);
    // Only what was given becomes a property: callers tell absent from undefined.
    Object.assign(this, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
    if (within?.role !== undefined) this.role = joinedRole(within.role, options.role);
    if (workspaceDir !== undefined) this.workspaceDir = resolve(workspaceDir);
    this.roots = this.workspaceDir === undefined ? [] : [rootFor(this.workspaceDir)];
    this.client = clientSide(this.id, this.roots, options);
    this.#onClose = onClose;
    // One listener for each call in progress, without a limit.
    setMaxListeners(0, this.#closed.signal);
    if (within !== undefined) this.#join(within);
  }

  #join(within: Session): void {
    const end = (): void => this.close();
    within.closing.addEventListener("abort", end, { once: true });
    this.closing.addEventListener("abort", () => within.closing.removeEventListener("abort", end), { once: true });
  }

  /** All sets of rules that narrow it, together. */
  get rules(): SessionRules | undefined {
    return this.#within === undefined ? this.#allRules : together(this.#ruleSets());
  }

  #ruleSets(): SessionRules[] {
    const joined = this.#within === undefined ? [] : this.#within.#ruleSets();
    return [...this.#rules.values(), ...joined];
  }

  /** The same for all sessions to which the rules of the hub say the same: what may be shown and used is cached by it. */
  get viewKey(): string {
    // The rules of a session that it joined may change at any time.
    if (this.#within !== undefined) return this.#makeViewKey();
    this.#viewKey ??= this.#makeViewKey();
    return this.#viewKey;
  }

  #makeViewKey(): string {
    return JSON.stringify([this.owner, this.role ?? null, this.view ?? null, this.rules ?? null]);
  }

  /** Puts a set of rules on the session, in place of the one in this slot; undefined takes it away. Each can only narrow. */
  narrow(slot: string, rules: SessionRules | undefined): void {
    if (rules !== undefined) checkRules(rules);
    if (rules === undefined) this.#rules.delete(slot);
    // A copy, because the view key stands for it as it is now.
    else this.#rules.set(slot, structuredClone(rules));
    this.#allRules = together([...this.#rules.values()]);
    this.#viewKey = undefined;
  }

  /** Servers and tools that only this session has, or the one that it joined. */
  get own(): SessionParts {
    if (this.#within !== undefined) return this.closed ? NO_PARTS : this.#within.own;
    if (this.#host === undefined || (this.closed && this.#parts === undefined)) return NO_PARTS;
    this.#parts ??= new MountedParts(this.#host, {
      context: this,
      closing: this.closing,
      mayRunCommands: this.mayRunCommands,
      fromProgram: this.fromProgram,
      limits: this.#limits,
      events: this.ownEvents,
    });
    return this.#parts;
  }

  /** The same for the hub; undefined until it is first used. */
  get mounted(): MountedParts | undefined {
    return this.#within === undefined ? this.#parts : this.#within.mounted;
  }

  /** The id that an editor has for its session; undefined for sessions of other doors. */
  get editorId(): string | undefined {
    return this.door === EDITOR_DOOR ? this.conversation : undefined;
  }

  /** Whether its caller is the program that the hub is part of. */
  get inProcess(): boolean {
    return this.door === LIBRARY_DOOR;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Aborts when the session closes; calls in progress end as `cancelled`. */
  get closing(): AbortSignal {
    return this.#closed.signal;
  }

  /** The origins of what it has read and anyone may have written, until a person clears it; shared in its conversation. */
  get taint(): Taint | null {
    return this.#taintScope.taint;
  }

  get taintScope(): TaintScope {
    return this.#taintScope;
  }

  /** Shares what is known there from now on, and brings along what it knows itself. */
  shareTaint(scope: TaintScope): void {
    const own = this.taint?.origins ?? [];
    this.#taintScope = scope;
    for (const origin of own) this.markTainted(origin);
  }

  markTainted(origin: TaintOrigin): void {
    const telling = this.#taintScope.add(origin);
    if (telling !== undefined) this.tell(telling);
  }

  /** "I have read it": a person knows what the session and those of its conversation have read until now. */
  async clearTaint(by: ClearedBy = {}, at: number = Date.now()): Promise<void> {
    await this.#taintScope.clear(at, { ...by, session: this.id });
  }

  /** Results of its calls wait until other hubs have its taint. Never rejects. */
  tell(telling: Promise<void>): void {
    const all = (this.#telling = Promise.all([this.#telling, telling]).then(() => {
      if (this.#telling === all) this.#telling = undefined;
    }));
  }

  get telling(): Promise<void> | undefined {
    return this.#telling;
  }

  close(): void {
    if (this.closed) return;
    this.#closed.abort();
    for (const call of this.running) call.abort();
    this.results.clear();
    if (this.#parts !== undefined) this.#over = this.#parts.close();
    this.#onClose(this);
  }

  /** Resolves, once it is closed, when none of its processes is left. */
  get over(): Promise<void> {
    return this.#over;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** One set that has all of them. */
function together([first, ...also]: readonly SessionRules[]): SessionRules | undefined {
  return first === undefined || also.length === 0 ? first : { ...first, also };
}

function joinedRole(role: string, wanted: string | undefined): string {
  if (wanted === undefined || wanted === role) return role;
  throw new ToolcribError("denied", `The session has the role ${role}.`, { hint: "Leave the other role out." });
}

/** Programs without types give rules, too. */
function checkRules({ allow = [], deny = [], ask = [], exempt = [], also = [] }: SessionRules): void {
  for (const entry of [...allow, ...deny, ...ask, ...exempt]) {
    try {
      parseEntry(entry.replace(/^!/, ""));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ToolcribError("invalid_arguments", `The rule "${entry}" of a session cannot be read: ${why}.`);
    }
  }
  for (const rules of also) checkRules(rules);
}

/** Only what can be answered is declared, so that servers can choose another way. */
function clientSide(key: string, roots: readonly Root[], options: SessionOptions): ClientSide {
  const { onSample, onElicit, rootsOnRequest = false } = options;
  return {
    key,
    rootsOnRequest,
    capabilities: {
      ...(roots.length > 0 ? { roots: { listChanged: true } } : {}),
      ...(onSample ? { sampling: {} } : {}),
      ...(onElicit ? { elicitation: { form: {} } } : {}),
    },
    ...(roots.length > 0 ? { listRoots: async () => ({ roots: [...roots] }) } : {}),
    ...(onSample ? { sample: onSample } : {}),
    ...(onElicit ? { elicit: onElicit } : {}),
  };
}

/** Which source gave a session the link to a resource that no source lists: whoever gave it can read it. */
const MAX_LINKS = 1000;
const MAX_URI_LENGTH = 4096;

export class ResourceLinks {
  /** From public URI to source, the latest last. */
  readonly #sources = new Map<string, string>();

  get size(): number {
    return this.#sources.size;
  }

  /** The oldest makes room. What is too long to be an address is not remembered. */
  add(uri: string, source: string): void {
    if (uri.length > MAX_URI_LENGTH) return;
    this.#sources.delete(uri);
    this.#sources.set(uri, source);
    if (this.#sources.size <= MAX_LINKS) return;
    for (const oldest of this.#sources.keys()) {
      this.#sources.delete(oldest);
      return;
    }
  }

  sourceOf(uri: string): string | undefined {
    return this.#sources.get(uri);
  }
}
