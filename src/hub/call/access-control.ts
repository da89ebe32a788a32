/** Every reason why a session may or may not use a capability, in one place: rules, pins, poisoned definitions, taint. */
import type { Clock } from "../../base/clock.ts";
import { LruMap } from "../../base/maps.ts";
import { isReservedName } from "../../catalog/naming.ts";
import { correctedAnnotations } from "../../catalog/overrides.ts";
import { mappedUri, splitMappedUri } from "../../catalog/public-uris.ts";
import {
  type Capability,
  type CapabilityOrigin,
  isLocalSource,
  isSessionLocalSource,
  originalOf,
  type ToolCapability,
} from "../../model/capability.ts";
import type { Decision, Rule } from "../../model/decision.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Use } from "../../model/source.ts";
import { ArgumentReader } from "../../policy/argument-values.ts";
import type {
  SessionEntryPolicy,
  Explanation,
  Policy,
  PolicyActor,
  PolicySubject,
  CapabilityPolicy,
} from "../../policy/decide.ts";
import type { CallCounts, CallFacts } from "../../policy/rule-conditions.ts";
import type { ServerFiles } from "./server-files.ts";
import type { Matchable, ToolClasses, ToolFlow } from "../../policy/pattern.ts";
import {
  addressCarriesData,
  type Effect,
  effectsByName,
  findKnownTool,
  type ServerIdentity,
} from "../../policy/well-known-servers.ts";
import type { Session } from "../../sessions/session.ts";
import { describeTaint } from "../../sessions/taint.ts";
import { isSearchTool } from "../view/search-definitions.ts";
import { RESULTS_SOURCE } from "../../sessions/kept-results.ts";

/** Says more about a capability than rules do; undefined if it has nothing to say. */
export type Objection = (capability: Capability) => Decision | undefined;

interface AccessControlOptions {
  readonly policy: Policy;
  /** The session as rules see it, with what its views narrow. */
  readonly actorOf: (session: Session) => PolicyActor;
  readonly classes: ToolClasses;
  readonly taint: "off" | "ask" | "deny";
  /** Tags of a source, for rules like `tag:finance`. */
  readonly tagsOf: (source: string) => readonly string[];
  /** For a role's own server: the name that the tool would have at the hub's server whose place it takes. */
  readonly aliasOf: (source: string, originName: string) => string | undefined;
  /** Of an in-process tool. */
  readonly isOwnerOnly: (origin: CapabilityOrigin) => boolean;
  /** Of a source that a session brought. */
  readonly mounted: (source: string) => SessionEntryPolicy | undefined;
  /** The name of the user's skill that something belongs to. */
  readonly skillOf: (origin: CapabilityOrigin) => string | undefined;
  /** The server whose rules hold for a source: itself, or the one whose skills it offers. */
  readonly serverOf: (source: string) => string;
  /** By what a server is recognised as a well-known one; undefined for what is not a server. */
  readonly identityOf: (source: string) => ServerIdentity | undefined;
  readonly isTrusted: (source: string) => boolean;
  readonly files: ServerFiles;
  readonly counts: CallCounts;
  readonly clock: Clock;
  /** Pins and scanned definitions. They narrow, like everything after the rules. */
  readonly objections: readonly Objection[];
}

export class AccessControl {
  readonly #options: AccessControlOptions;
  readonly #flows = new WeakMap<Capability, ToolFlow>();
  readonly #decided = new DecisionCache();

  constructor(options: AccessControlOptions) {
    this.#options = options;
  }

  /** False for a session whose role nothing names: it sees nothing. */
  knowsRoleOf({ role }: Pick<Session, "role">): boolean {
    return role === undefined || this.#options.policy.knowsRole(role);
  }

  /** Whether the session sees it in lists. What must be asked for is seen. */
  shows(session: Session, capability: Capability, uri?: string): boolean {
    return this.#isShown(capability, this.#ruled(session, capability, uri).decision);
  }

  /** The same for a whole list: what depends on the session alone is looked up once. */
  visibleTo(session: Session): (capability: Capability) => boolean {
    const decisions = this.#decisionsOf(session);
    return (capability) => this.#isShown(capability, this.#ruled(session, capability, undefined, decisions).decision);
  }

  /**
   * What rules with conditions have to know of a call; undefined if none is about it. A promise where links of files have to be
   * followed.
   * @param use In the source's own words: rules look at what the server receives.
   */
  facts(
    session: Session,
    capability: Capability,
    uri: string | undefined,
    { use, client, tainted = session.taint !== null, now = this.#options.clock.now(), earlierCalls }: CallView,
  ): CallFacts | Promise<CallFacts> | undefined {
    const { conditional } = this.#ruled(session, capability, uri);
    if (conditional === undefined) return undefined;
    const args = use.kind === "tool" || use.kind === "prompt" ? use.arguments : undefined;
    const original = originalOf(capability);
    const schema = original.kind === "tool" ? original.definition.inputSchema : undefined;
    const { place, isLocal } = this.#options.files.of(capability.origin.source, session);
    const make = (links: ReadonlyMap<string, string | null> | undefined): CallFacts => ({
      arguments: args,
      schema,
      reader: new ArgumentReader(place, isLocal ? (links ?? NO_LINKS) : undefined),
      ...{ tainted, client, now },
      name: capability.name,
      countCalls: (counted) => earlierCalls ?? this.#options.counts.count(callerKey(session), counted, capability.name),
    });
    const paths = args === undefined || !isLocal ? [] : conditional.paths(args, schema, place);
    return paths.length === 0 ? make(undefined) : this.#options.files.follow(paths).then(make);
  }

  /** Whether the decision on a call depends on more than its name. */
  isConditional(session: Session, capability: Capability, uri?: string): boolean {
    return this.#ruled(session, capability, uri).conditional !== undefined;
  }

  /** Counts a call that goes on to its source, for rules that look at how many there were. */
  count(session: Session, { name }: Capability): void {
    this.#options.counts.add(callerKey(session), this.#options.policy.counted, name);
  }

  /**
   * The strictest verdict of rules, objections and taint.
   * @param args Of a call: an address among them may carry data.
   * @param facts Of a call, for rules with conditions. Without them these rules let everything pass.
   */
  decide(
    session: Session,
    capability: Capability,
    uri?: string,
    args?: Readonly<JsonObject>,
    facts?: CallFacts,
  ): Decision {
    let decision = this.#byFacts(session, capability, uri, facts);
    if (kindOf(capability) === "builtIn") return decision;
    for (const objects of this.#options.objections) decision = strictest(decision, objects(capability));
    return strictest(decision, this.#taintVerdict(session, capability, uri, args));
  }

  /** All verdicts: rules first, then objections, then taint. Approval of one is not approval of another. */
  verdicts(
    session: Session,
    capability: Capability,
    uri?: string,
    args?: Readonly<JsonObject>,
    facts?: CallFacts,
  ): Decision[] {
    const byRules = this.#byFacts(session, capability, uri, facts);
    if (kindOf(capability) === "builtIn") return [byRules];
    const objections = this.#options.objections.map((objects) => objects(capability));
    const narrowing = [...objections, this.#taintVerdict(session, capability, uri, args)];
    return [byRules, ...narrowing.filter((decision) => decision !== undefined)];
  }

  /** The rules' part of the decision, step by step, and the decision as a whole. */
  explain(
    session: Session,
    capability: Capability,
    uri?: string,
    args?: Readonly<JsonObject>,
    facts?: CallFacts,
  ): Explanation {
    const explained = this.#options.policy.explain(
      this.subject(capability, uri),
      this.#options.actorOf(session),
      facts,
    );
    return { ...explained, decision: this.decide(session, capability, uri, args, facts) };
  }

  /** Every `ask` entry that applies, at whichever level. */
  askingRules(session: Session, capability: Capability, uri?: string, facts?: CallFacts): Rule[] {
    const { steps } = this.#options.policy.explain(
      this.subject(capability, uri),
      this.#options.actorOf(session),
      facts,
    );
    return steps.flatMap(({ verdict, rule }) => (verdict === "ask" && rule !== null ? [rule] : []));
  }

  #byFacts(session: Session, capability: Capability, uri?: string, facts?: CallFacts): Decision {
    const { decision, conditional } = this.#ruled(session, capability, uri);
    return facts === undefined || conditional === undefined ? decision : conditional.decide(facts);
  }

  /** Its effects on data, as far as the flow guard is concerned. */
  flowOf(capability: Capability): ToolFlow {
    // What `toolcrib_call` brings in is laid to the tool that it ran.
    if (isSearchTool(capability)) return NO_FLOW;
    let flow = this.#flows.get(capability);
    if (flow === undefined)
      this.#flows.set(capability, (flow = this.#options.classes.flowOf(this.#matchable(capability))));
    return flow;
  }

  /** @param uri What is read, where the capability is a template that it fits: rules on either hold. */
  subject(capability: Capability, uri?: string): PolicySubject {
    const local = isLocalSource(capability.origin.source) || isSearchTool(capability);
    const isTool = capability.kind === "tool";
    return {
      kind: capability.kind,
      publicName: capability.name,
      aliases: this.#aliases(capability),
      read: capability.kind === "template" && uri !== undefined ? urisOf(uri, capability.origin.source) : undefined,
      ...(capability.kind === "template" && uri !== undefined ? { ownNames: [uri] } : {}),
      originName: capability.origin.name,
      server: local ? null : this.#options.serverOf(capability.origin.source),
      skill: local ? undefined : this.#options.skillOf(capability.origin),
      annotations: isTool ? capability.definition.annotations : undefined,
      tags: this.#options.tagsOf(this.#options.serverOf(capability.origin.source)),
      ownerOnly: local && isTool && this.#options.isOwnerOnly(capability.origin),
      mounted: this.#options.mounted(capability.origin.source),
    };
  }

  #aliases(capability: Capability): string[] {
    const { kind, name, origin } = capability;
    if (kind === "resource" || kind === "template") return urisOf(name, origin.source).slice(1);
    const alias = this.#options.aliasOf(origin.source, origin.name);
    // A rule on a name still applies to a tool that an override calls otherwise.
    const former = capability.kind === "tool" ? (capability.shape?.formerNames ?? []) : [];
    return alias === undefined ? [...former] : [...former, alias];
  }

  #isShown(capability: Capability, byRules: Decision): boolean {
    if (byRules.verdict === "deny") return false;
    if (kindOf(capability) === "builtIn") return true;
    for (const objects of this.#options.objections) if (objects(capability)?.verdict === "deny") return false;
    return true;
  }

  /** The verdict of the rules, which stays the same for as long as the capability and the session's rules do. */
  #ruled(
    session: Session,
    capability: Capability,
    uri?: string,
    decisions: SessionDecisions | undefined = this.#decisionsOf(session),
  ): Ruled {
    // Kept results belong to the session alone, and were decided on when they were made.
    if (capability.origin.source === RESULTS_SOURCE) return ALLOWED;
    // A template has any number of URIs.
    if (capability.kind === "template" && uri !== undefined) return this.#byRules(session, capability, uri);
    if (decisions === undefined) return this.#byRules(session, capability);
    // Whether a tool is its owner's only can change while its definition does not.
    const isOwnerOnly = kindOf(capability) === "localTool" && this.#options.isOwnerOnly(capability.origin);
    const known = isOwnerOnly ? decisions.ownerOnly : decisions.others;
    let ruled = known.get(capability);
    if (ruled === undefined) {
      ruled = this.#byRules(session, capability);
      // What no rule is about needs no decision of its own.
      if (ruled.conditional === undefined && ruled.decision.rule === null && ruled.decision.verdict === "allow")
        ruled = ALLOWED;
      // Records show it to listeners, who must not change what applies to the next call.
      Object.freeze(ruled.decision);
      Object.freeze(ruled.decision.rule);
      known.set(capability, ruled);
    }
    return ruled;
  }

  /** Undefined for an unknown role, of which there is any number of names. */
  #decisionsOf(session: Session): SessionDecisions | undefined {
    return this.knowsRoleOf(session) ? this.#decided.of(session) : undefined;
  }

  #byRules(session: Session, capability: Capability, uri?: string): Ruled {
    if (isSearchTool(capability) || isAgentTool(capability)) {
      return { decision: this.#searchVerdict(session, capability), conditional: undefined };
    }
    const prepared = this.#options.policy.prepare(this.subject(capability, uri), this.#options.actorOf(session));
    return { decision: prepared.decide(), conditional: prepared.isConditional ? prepared : undefined };
  }

  /**
   * The search tools give nothing that the session does not have, and what they run is decided under its own name. So only
   * a `deny` that names them counts: an allow list or a role's list of servers is not about them.
   */
  #searchVerdict(session: Session, capability: Capability): Decision {
    // Classes, and allow lists, are about tools: as another kind only its name counts.
    const subject = { ...this.subject(capability), kind: "prompt" as const };
    const { steps } = this.#options.policy.explain(subject, session);
    const rule = steps.find((step) => step.rule?.list === "deny")?.rule;
    return rule ? { verdict: "deny", rule } : { verdict: "allow", rule: null };
  }

  #taintVerdict(
    session: Session,
    capability: Capability,
    uri?: string,
    args?: Readonly<JsonObject>,
  ): Decision | undefined {
    const mode = this.#options.taint;
    const { taint } = session;
    if (mode === "off" || taint === null) return undefined;
    const risk = this.#riskOf(capability, uri, args);
    if (risk === undefined) return undefined;
    const where = `guard.taint: ${describeTaint(taint)}`;
    return { verdict: mode, rule: { level: "taint", list: "taint", pattern: risk, where } };
  }

  #riskOf(capability: Capability, uri?: string, args?: Readonly<JsonObject>): ToolFlow["risk"] {
    const { kind, origin } = capability;
    const flow = this.flowOf(capability);
    if (kind === "tool")
      return flow.risk ?? (flow.fetches && args !== undefined && addressCarriesData(args) ? "sendsOut" : undefined);
    // What fits into a template is chosen by whoever reads, as the address of a page is. Listed resources are the server's own.
    if (kind !== "template" || uri === undefined || !flow.openWorld || this.#options.isTrusted(origin.source))
      return undefined;
    return addressCarriesData({ uri }) ? "sendsOut" : undefined;
  }

  #matchable(capability: Capability): Matchable {
    const { kind, publicName, aliases = [], originName, annotations, tags } = this.subject(capability);
    const { source, name } = capability.origin;
    const { identityOf, isTrusted } = this.#options;
    const identity = kind === "tool" ? identityOf(source) : undefined;
    const corrected = capability.kind === "tool" ? effectsOfCorrections(capability) : NO_EFFECTS;
    const found = identity && findKnownTool(identity, name);
    const known = found && { ...found, effects: without(found.effects, corrected) };
    // A trusted server's hints are believed, and so are those that the config corrects.
    const byName = identity === undefined || isTrusted(source) ? undefined : without(effectsByName(name), corrected);
    return { kind, names: [publicName, originName, ...aliases], annotations, tags, known, byName };
  }
}

const NO_EFFECTS: ReadonlySet<Effect> = new Set();

/** The effects that the config says it does not have, whatever its name or the table of well-known servers says. */
function effectsOfCorrections(tool: ToolCapability): ReadonlySet<Effect> {
  if (tool.shape === undefined) return NO_EFFECTS;
  const { readOnlyHint, destructiveHint, openWorldHint } = correctedAnnotations(tool);
  return new Set<Effect>([
    ...(readOnlyHint === true || destructiveHint === false ? (["destroys"] as const) : []),
    ...(openWorldHint === false ? (["brings", "fetches", "sends"] as const) : []),
  ]);
}

function without(effects: ReadonlySet<Effect>, gone: ReadonlySet<Effect>): ReadonlySet<Effect> {
  return gone.size === 0 ? effects : new Set([...effects].filter((effect) => !gone.has(effect)));
}

const NO_FLOW: ToolFlow = { openWorld: false, risk: undefined, fetches: false, memory: undefined };

/** A public URI, and the same with or without its server's name before it: a rule on either applies. */
function urisOf(uri: string, source: string): [string, string] {
  return [uri, splitMappedUri(uri)?.uri ?? mappedUri(source, uri)];
}

/** The rules' verdict on a capability. */
interface Ruled {
  /** Whatever the call is like: rules with conditions are taken not to hold it back. */
  readonly decision: Decision;
  /** There if a rule with conditions is about it. */
  readonly conditional: CapabilityPolicy | undefined;
}

/** A call as rules with conditions see it. */
export interface CallView {
  readonly use: Use;
  /** The name that the client program gives itself. */
  readonly client: string | undefined;
  /** For a call that is only thought of; those of the session, of now and of what was counted if absent. */
  readonly tainted?: boolean | undefined;
  readonly now?: number | undefined;
  readonly earlierCalls?: number | undefined;
}

const NO_LINKS: ReadonlyMap<string, string | null> = new Map();

/** Whose calls are counted together: a new session does not start from zero. */
function callerKey({ user, caller, owner, role }: Session): string {
  return user ?? caller ?? (owner ? "owner" : `role ${role ?? ""}`);
}

const ALLOWED: Ruled = Object.freeze({
  decision: Object.freeze({ verdict: "allow", rule: null }),
  conditional: undefined,
});
const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;

function strictest(first: Decision, second: Decision | undefined): Decision {
  return second !== undefined && STRICTNESS[second.verdict] > STRICTNESS[first.verdict] ? second : first;
}

/** The tools of Toolcrib's own agent, whose names are reserved. They too act under the session's rules only. */
function isAgentTool({ name, origin }: Capability): boolean {
  return isSessionLocalSource(origin.source) && isReservedName(name);
}

/** `builtIn`: the hub's own, nothing to pin, and nothing that they could bring in by themselves. */
type CapabilityKind = "builtIn" | "localTool" | "other";

function kindOf(capability: Capability): CapabilityKind {
  const { origin, kind } = capability;
  if (origin.source === RESULTS_SOURCE || isSearchTool(capability)) return "builtIn";
  return kind === "tool" && isLocalSource(origin.source) ? "localTool" : "other";
}

/** Clients choose how they narrow: what was decided for the least recently used way is decided again. */
const MAX_NARROWED_KEYS = 64;
/** Every role costs as much again for each capability. */
const MAX_ROLE_KEYS = 256;

interface SessionDecisions {
  readonly ownerOnly: WeakMap<Capability, Ruled>;
  readonly others: WeakMap<Capability, Ruled>;
}

/** The rules' decision on a capability for each view key, so that a call does not match every pattern again. */
class DecisionCache {
  readonly #ofRoles = new LruMap<string, SessionDecisions>(MAX_ROLE_KEYS);
  readonly #narrowed = new LruMap<string, SessionDecisions>(MAX_NARROWED_KEYS);

  of({ viewKey, rules }: Session): SessionDecisions {
    const cache = rules === undefined ? this.#ofRoles : this.#narrowed;
    let decisions = cache.get(viewKey);
    if (decisions === undefined) {
      decisions = { ownerOnly: new WeakMap(), others: new WeakMap() };
      cache.set(viewKey, decisions);
    }
    return decisions;
  }
}
