/** Rules in, Decision out. */
import type { Capability } from "../model/capability.ts";
import type { Decision, Rule } from "../model/decision.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import type { JsonObject } from "../model/json.ts";
import type { ConditionalRule, SessionRules, ToolRules } from "../model/tool-rules.ts";
import { spellingsOf } from "./canonical-uri.ts";
import { type FilePlace, LinkPaths } from "./argument-values.ts";
import {
  type ConcernedEntry,
  type ConcernedList,
  type ConditionalEntry,
  type Matchable,
  PatternList,
} from "./pattern.ts";
import type { CallFacts, Conditions, CountedCalls } from "./rule-conditions.ts";

export interface ServerPolicy {
  readonly rules?: ToolRules | undefined;
  /** Roles that may see the server; all if absent. */
  readonly roles?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** For a role's own server: the id of the server whose place it takes. */
  readonly replaces?: string | undefined;
  /** Roles that have a server of their own in its place. */
  readonly replacedFor?: readonly string[] | undefined;
  /** For a role's own server: the rules of the server that it replaces, which still apply. */
  readonly replaced?: { readonly rules: ToolRules; readonly where: string } | undefined;
  /** Where the server's rules are written, for a person. */
  readonly where: string;
}

export interface RolePolicy {
  /** Ids of the servers that the role may see, `local` for in-process tools; all if absent. */
  readonly servers?: readonly string[] | undefined;
  /** Names of skills that the role may see where `servers` says which servers; all where it does not. */
  readonly skills?: readonly string[] | undefined;
  readonly rules?: ToolRules | undefined;
  readonly where: string;
}

interface PolicyOptions {
  readonly hub: ToolRules;
  /** Where the hub's rules are written, for a person. */
  readonly where: string;
  /** Those of the project config that was added to the hub's. */
  readonly project?: { readonly rules: ToolRules; readonly where: string } | undefined;
  /** Every configured server, disabled ones too: with `roles` they say which roles exist. */
  readonly servers: ReadonlyMap<string, ServerPolicy>;
  readonly roles?: ReadonlyMap<string, RolePolicy> | undefined;
}

/** The capability that a session wants to see or use. */
export interface PolicySubject {
  readonly kind: Capability["kind"];
  /** Public name, or public URI of a resource or template. */
  readonly publicName: string;
  /**
   * Other names that rules apply to: of a tool at a role's own server its name at the server that is replaced, of a
   * URI the one that names its server, and the server's own.
   */
  readonly aliases?: readonly string[] | undefined;
  /** Of a template: the URI that is read through it, in all its public forms. */
  readonly read?: readonly string[] | undefined;
  /** The names under which exactly this is meant: of a template the URI that is read. The public name if absent. */
  readonly ownNames?: readonly string[] | undefined;
  readonly originName: string;
  /** The server id; null for in-process tools. */
  readonly server: string | null;
  /** The name of the skill that it belongs to. */
  readonly skill?: string | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  /** Those of its server if absent. */
  readonly tags?: readonly string[] | undefined;
  readonly ownerOnly?: boolean | undefined;
  /**
   * There if the session itself brought it: the rules of its own entry, as those of a server. Lists of servers and tags say
   * which part of the hub is meant, and so nothing about this.
   */
  readonly mounted?: SessionEntryPolicy | undefined;
}

export interface SessionEntryPolicy {
  readonly rules?: ToolRules | undefined;
  readonly where: string;
}

export interface PolicyActor {
  readonly role?: string | undefined;
  /** True for a session of the user who runs the hub. */
  readonly owner: boolean;
  /** Rules of the session itself; they narrow what is left. */
  readonly rules?: SessionRules | undefined;
}

/** One level's say, for `policy explain`. */
export interface PolicyStep {
  readonly level: Rule["level"];
  readonly where: string;
  readonly verdict: Decision["verdict"] | "silent";
  readonly rule: Rule | null;
}

/** The rule that was closest to another decision. */
export interface NearestRule {
  readonly verdict: Decision["verdict"];
  readonly rule: Rule;
  /** Its conditions that do not hold, as written; none for one that another rule overrules. */
  readonly unmet: readonly string[];
}

export interface Explanation {
  readonly decision: Decision;
  readonly steps: readonly PolicyStep[];
  /** Absent where no other rule is about it. */
  readonly nearest?: NearestRule | undefined;
}

const THIS_SESSION = "this session";

interface Compiled<P> {
  readonly policy: P;
  readonly rules: RuleList;
}

interface CompiledSession {
  readonly rules: RuleList;
  readonly exempt: PatternList | undefined;
}

/**
 * Levels: hub, project, server, role, session. Each can only narrow: a deny at any level denies, else an ask at any level asks.
 * Within one level deny beats ask beats allow. `deny` and `ask` apply to every kind, by name or URI. `allow` applies
 * to tools only: it is below `tools`, and a list of tool names that hides every resource would surprise.
 */
export class Policy {
  readonly #where: string;
  readonly #hub: RuleList;
  readonly #project: RuleList | undefined;
  /** By what they count: sessions come with rules that say the same. */
  readonly #counted = new Map<string, CountedCalls>();
  readonly #servers = new Map<string, Compiled<ServerPolicy>>();
  readonly #roles = new Map<string, Compiled<RolePolicy>>();
  readonly #knownRoles: ReadonlySet<string>;
  readonly #sessionRules = new WeakMap<SessionRules, CompiledSession>();
  readonly #replacedRules = new WeakMap<ToolRules, RuleList>();

  constructor(options: PolicyOptions) {
    this.#where = options.where;
    this.#hub = new RuleList("hub", options.hub, options.where);
    const { project } = options;
    this.#project = project && new RuleList("project", project.rules, project.where);
    for (const [id, policy] of options.servers) {
      this.#servers.set(id, { policy, rules: new RuleList("server", policy.rules ?? {}, policy.where) });
    }
    for (const [name, policy] of options.roles ?? []) {
      this.#roles.set(name, { policy, rules: new RuleList("role", policy.rules ?? {}, policy.where) });
    }
    for (const rules of [this.#hub, this.#project, ...this.#servers.values(), ...this.#roles.values()]) {
      this.#count(rules && "policy" in rules ? rules.rules : rules);
    }
    const named = [...options.servers.values()].flatMap(({ roles = [] }) => roles);
    this.#knownRoles = new Set([...this.#roles.keys(), ...named]);
  }

  /** Whether anything names the role. To one that nothing names everything is denied. */
  knowsRole(name: string): boolean {
    return this.#knownRoles.has(name);
  }

  decide(subject: PolicySubject, who: PolicyActor): Decision {
    return this.prepare(subject, who).decide();
  }

  /** The decision, with what each level said on the way. */
  explain(subject: PolicySubject, who: PolicyActor, facts?: CallFacts): Explanation {
    return this.prepare(subject, who).explain(facts);
  }

  /** The calls that any rule counts. */
  get counted(): Iterable<CountedCalls> {
    return this.#counted.values();
  }

  #count(rules: RuleList | undefined): void {
    for (const counted of rules?.counted ?? []) this.#counted.set(JSON.stringify(counted), counted);
  }

  /** The rules that are about a subject. Those with conditions are decided for each call. */
  prepare(subject: PolicySubject, who: PolicyActor): CapabilityPolicy {
    const server = subject.server === null ? undefined : this.#servers.get(subject.server);
    const role = who.role === undefined ? undefined : this.#roles.get(who.role);
    const { kind, read, annotations, tags = server?.policy.tags, ownNames = [subject.publicName] } = subject;
    const publicNames = [subject.publicName, ...(subject.aliases ?? []), ...(read ?? [])];
    const spellings = rememberedSpellings();
    const byPublicName: Matchable = { kind, names: publicNames, read, ownNames, annotations, tags, spellings };
    // A server's rules may also use the server's own names.
    const byEitherName: Matchable = { ...byPublicName, names: [subject.originName, ...publicNames] };
    const isTool = subject.kind === "tool";

    const narrowed = ruleSets(who.rules);
    const admission = [...this.#admission(subject, who, narrowed, server?.policy, role?.policy)];
    const levels = [this.#hub.concerning(byPublicName, isTool)];
    if (this.#project !== undefined) levels.push(this.#project.concerning(byPublicName, isTool));
    if (server !== undefined) levels.push(server.rules.concerning(byEitherName, isTool));
    const replaced = server?.policy.replaced;
    if (replaced !== undefined) levels.push(this.#compiled(replaced).concerning(byEitherName, isTool));
    const { mounted } = subject;
    if (mounted?.rules !== undefined) {
      const compiled = this.#compiled({ rules: mounted.rules, where: mounted.where });
      levels.push(compiled.concerning(byEitherName, isTool));
    }
    if (role !== undefined) levels.push(role.rules.concerning(byPublicName, isTool));
    for (const rules of narrowed) {
      const byName = rules.ownNames === true ? byEitherName : byPublicName;
      const compiled = this.#compileSession(rules);
      const hasAllow = isTool && compiled.exempt?.match(byPublicName) === undefined;
      levels.push(compiled.rules.concerning(byName, hasAllow));
    }
    return new CapabilityPolicy(admission, levels);
  }

  /** Denials that do not depend on rules. */
  *#admission(
    subject: PolicySubject,
    who: PolicyActor,
    narrowed: readonly SessionRules[],
    server: ServerPolicy | undefined,
    role: RolePolicy | undefined,
  ): Generator<PolicyStep> {
    if (subject.ownerOnly === true && !who.owner) {
      const where = "the tool's own definition";
      yield denial({ level: "tool", list: "ownerOnly", pattern: subject.publicName, where });
    }
    if (who.role !== undefined && !this.#knownRoles.has(who.role)) {
      yield denial({ level: "role", list: "roles", pattern: who.role, where: `${this.#where}: no such role` });
    }
    if (server?.roles !== undefined) {
      // A session without a role is either the owner's, who sees all, or a guest's, who sees what names no roles.
      const admitted = who.role === undefined ? who.owner : server.roles.includes(who.role);
      if (!admitted) {
        yield denial({ level: "server", list: "roles", pattern: server.roles.join(", "), where: server.where });
      }
    }
    if (who.role !== undefined && server?.replacedFor?.includes(who.role) === true) {
      const where = `${this.#where}: the role has a server of its own in its place`;
      yield denial({ level: "role", list: "servers", pattern: String(subject.server), where });
    }
    if (subject.mounted !== undefined) return;
    if (role?.servers !== undefined && subject.skill !== undefined) {
      const skills = role.skills ?? [];
      if (!skills.includes(subject.skill))
        yield denial({ level: "role", list: "skills", pattern: skills.join(", "), where: role.where });
    } else if (role?.servers !== undefined && !role.servers.includes(subject.server ?? "local")) {
      yield denial({ level: "role", list: "servers", pattern: role.servers.join(", "), where: role.where });
    }
    for (const rules of narrowed) yield* scopeDenials(subject, rules, server);
  }

  #compiled({ rules, where }: { readonly rules: ToolRules; readonly where: string }): RuleList {
    let compiled = this.#replacedRules.get(rules);
    if (compiled === undefined) {
      compiled = new RuleList("server", rules, where);
      this.#count(compiled);
      this.#replacedRules.set(rules, compiled);
    }
    return compiled;
  }

  #compileSession(rules: SessionRules): CompiledSession {
    let compiled = this.#sessionRules.get(rules);
    if (compiled === undefined) {
      const exempt = rules.exempt && new PatternList(rules.exempt);
      compiled = { rules: new RuleList("session", rules, THIS_SESSION), exempt };
      this.#sessionRules.set(rules, compiled);
      this.#count(compiled.rules);
    }
    return compiled;
  }
}

/** For one decision: several levels match the same URIs. */
function rememberedSpellings(): typeof spellingsOf {
  const known = new Map<string, ReturnType<typeof spellingsOf>>();
  return (uri) => {
    if (!known.has(uri)) known.set(uri, spellingsOf(uri));
    return known.get(uri);
  };
}

const NO_RULE_SETS: readonly SessionRules[] = [];

function ruleSets(rules: SessionRules | undefined): readonly SessionRules[] {
  if (rules === undefined) return NO_RULE_SETS;
  return rules.also === undefined ? [rules] : [rules, ...rules.also];
}

/** Denies what is outside of the part of the hub that the session asked for. */
function* scopeDenials(
  { server: id, tags: given }: PolicySubject,
  { servers, tags }: SessionRules,
  server: ServerPolicy | undefined,
): Generator<PolicyStep> {
  if (servers !== undefined) {
    const isMeant =
      servers.includes(id ?? "local") || (server?.replaces !== undefined && servers.includes(server.replaces));
    if (!isMeant) yield denial({ level: "session", list: "servers", pattern: servers.join(", "), where: THIS_SESSION });
  }
  if (tags !== undefined) {
    const has = given ?? server?.tags ?? [];
    if (!tags.some((tag) => has.includes(tag))) {
      yield denial({ level: "session", list: "tags", pattern: tags.join(", "), where: THIS_SESSION });
    }
  }
}

function denial(rule: Rule): PolicyStep {
  return { level: rule.level, where: rule.where, verdict: "deny", rule };
}

/** The rules of one level. */
class RuleList {
  readonly #level: Rule["level"];
  readonly #where: string;
  readonly #lists: { readonly allow: PatternList | null; readonly deny: PatternList; readonly ask: PatternList };
  readonly #allowText: string;

  constructor(level: Rule["level"], { allow, deny = [], ask = [], rules = [] }: ToolRules, where: string) {
    this.#level = level;
    this.#where = where;
    const allowing = conditionalEntries(rules, "allow");
    this.#lists = {
      allow: allow === undefined && allowing.length === 0 ? null : new PatternList(allow ?? [], allowing),
      deny: new PatternList(deny, conditionalEntries(rules, "deny")),
      ask: new PatternList(ask, conditionalEntries(rules, "ask")),
    };
    this.#allowText = [...(allow ?? []), ...allowing.map(({ pattern }) => pattern)].join(", ");
  }

  get counted(): CountedCalls[] {
    const { allow, deny, ask } = this.#lists;
    return [...deny.counted, ...ask.counted, ...(allow?.counted ?? [])];
  }

  /** @param hasAllow Whether the list of what is allowed says anything about it. */
  concerning(subject: Matchable, hasAllow: boolean): LevelRules {
    const { allow, deny, ask } = this.#lists;
    return {
      level: this.#level,
      where: this.#where,
      deny: deny.concerning(subject, false),
      ask: ask.concerning(subject, false),
      allow: hasAllow && allow !== null ? allow.concerning(subject, true) : undefined,
      allowText: this.#allowText,
    };
  }
}

function conditionalEntries(rules: readonly ConditionalRule[], list: "allow" | "deny" | "ask"): ConditionalEntry[] {
  return rules.flatMap(({ [list]: pattern, when }) => (pattern === undefined ? [] : [{ pattern, when }]));
}

/** The rules of one level that are about one subject. */
interface LevelRules {
  readonly level: Rule["level"];
  readonly where: string;
  readonly deny: ConcernedList;
  readonly ask: ConcernedList;
  /** Absent if there is no such list, or it does not apply to the subject. */
  readonly allow: ConcernedList | undefined;
  /** All entries of the list. */
  readonly allowText: string;
}

/**
 * The rules that are about one subject for one caller. Without facts of a call, what depends on them is taken in favour of the
 * subject: a rule with conditions hides nothing.
 */
export class CapabilityPolicy {
  readonly #admission: readonly PolicyStep[];
  readonly #levels: readonly LevelRules[];
  readonly #conditions: readonly Conditions[];

  constructor(admission: readonly PolicyStep[], levels: readonly LevelRules[]) {
    this.#admission = admission;
    this.#levels = levels;
    this.#conditions = levels
      .flatMap(({ deny, ask, allow }) =>
        [deny, ask, allow].flatMap((list) => [...(list?.entries ?? []), ...(list?.exceptions ?? [])]),
      )
      .flatMap(({ conditions }) => conditions ?? []);
  }

  /** Whether the decision depends on the call. */
  get isConditional(): boolean {
    return this.#conditions.length > 0;
  }

  /** Absolute paths among the arguments whose links have to be known for a decision. */
  paths(args: Readonly<JsonObject>, schema: Readonly<JsonObject> | undefined, place: FilePlace): string[] {
    const paths = new LinkPaths(place);
    for (const conditions of this.#conditions) conditions.addPaths(args, schema, paths);
    return paths.all;
  }

  /** The strictest of what the levels say. */
  decide(facts?: CallFacts): Decision {
    let asking: Rule | null = null;
    let granting: Rule | null = null;
    const [refused] = this.#admission;
    if (refused?.rule) return { verdict: "deny", rule: refused.rule };
    for (const rules of this.#levels) {
      const { verdict, rule } = decideLevel(rules, facts);
      if (rule === null) continue;
      if (verdict === "deny") return { verdict, rule };
      if (verdict === "ask") asking ??= rule;
      else granting = rule;
    }
    return asking === null ? { verdict: "allow", rule: granting } : { verdict: "ask", rule: asking };
  }

  /** The verdict of each level. */
  steps(facts?: CallFacts): PolicyStep[] {
    return [...this.#admission, ...this.#levels.map((rules) => decideLevel(rules, facts))];
  }

  explain(facts?: CallFacts): Explanation {
    const decision = this.decide(facts);
    return { decision, steps: this.steps(facts), nearest: this.#nearest(decision, facts) };
  }

  /** Of the rules that would have decided otherwise the one with the fewest conditions that do not hold. */
  #nearest({ verdict: decided }: Decision, facts: CallFacts | undefined): NearestRule | undefined {
    let nearest: NearestRule | undefined;
    const consider = (found: NearestRule): void => {
      if (found.verdict === decided || (decided === "allow" && found.unmet.length === 0)) return;
      if (nearest === undefined || found.unmet.length < nearest.unmet.length) nearest = found;
    };
    for (const { level, where, deny, ask, allow } of this.#levels) {
      for (const [list, concerned] of [
        ["deny", deny],
        ["ask", ask],
        ["allow", allow],
      ] as const) {
        const grants = list === "allow";
        for (const { text, conditions } of concerned?.entries ?? []) {
          const rule = { level, list, pattern: text, where, ...argumentsOf([conditions]) };
          consider({ verdict: list, rule, unmet: unmetOf(conditions, facts, grants) });
        }
        for (const { text, conditions } of concerned?.exceptions ?? []) {
          const rule = { level, list, pattern: text, where, ...argumentsOf([conditions]) };
          consider({ verdict: grants ? "deny" : "allow", rule, unmet: unmetOf(conditions, facts, !grants) });
        }
      }
    }
    return nearest;
  }
}

function unmetOf(conditions: Conditions | undefined, facts: CallFacts | undefined, surely: boolean): readonly string[] {
  if (conditions === undefined) return [];
  return facts === undefined ? conditions.texts : conditions.failing(facts, surely);
}

function decideLevel(rules: LevelRules, facts: CallFacts | undefined): PolicyStep {
  const { level, where, deny, ask, allow, allowText } = rules;
  const denied = firstThatHolds(deny, facts, false);
  if (denied !== undefined) return denial(ruleOf(rules, "deny", denied.text, [denied, ...deny.exceptions]));
  const asked = firstThatHolds(ask, facts, false);
  if (allow !== undefined) {
    // What an `ask` entry names is allowed once approved, so it need not be in `allow` as well.
    const mayAsk = asked !== undefined || (facts === undefined && firstThatHolds(ask, facts, true) !== undefined);
    const granted = firstThatHolds(allow, facts, true);
    if (granted === undefined && !mayAsk) {
      return denial(ruleOf(rules, "allow", allowText, [...allow.entries, ...allow.exceptions]));
    }
    if (asked === undefined) {
      const rule = granted === undefined ? null : ruleOf(rules, "allow", granted.text, [granted, ...allow.exceptions]);
      return { level, where, verdict: rule === null ? "silent" : "allow", rule };
    }
  }
  if (asked === undefined) return { level, where, verdict: "silent", rule: null };
  return { level, where, verdict: "ask", rule: ruleOf(rules, "ask", asked.text, [asked, ...ask.exceptions]) };
}

/**
 * The first entry whose conditions hold, unless those of an exception do.
 * @param grants Whether an entry lets through. Then it has to hold beyond doubt, and else an exception has to.
 */
function firstThatHolds(
  { entries, exceptions, entryIndex, exceptionIndex }: ConcernedList,
  facts: CallFacts | undefined,
  grants: boolean,
): ConcernedEntry | undefined {
  const looked = (facts && entryIndex?.candidates(facts)) ?? entries;
  const found = looked.find(({ conditions }) => holds(conditions, facts, grants));
  if (found === undefined) return undefined;
  const excepting = (facts && exceptionIndex?.candidates(facts)) ?? exceptions;
  return excepting.some(({ conditions }) => holds(conditions, facts, !grants)) ? undefined : found;
}

/** Without facts, conditions hold for what lets through and do not for what holds back. */
function holds(conditions: Conditions | undefined, facts: CallFacts | undefined, lets: boolean): boolean {
  if (conditions === undefined) return true;
  if (facts === undefined) return lets;
  const { possible, sure } = conditions.test(facts);
  return lets ? sure : possible;
}

function ruleOf(
  { level, where }: LevelRules,
  list: "allow" | "deny" | "ask",
  pattern: string,
  looked: readonly ConcernedEntry[],
): Rule {
  return { level, list, pattern, where, ...argumentsOf(looked.map(({ conditions }) => conditions)) };
}

function argumentsOf(all: readonly (Conditions | undefined)[]): Pick<Rule, "arguments"> {
  const names = new Set(all.flatMap((conditions) => conditions?.arguments ?? []));
  names.delete("*");
  return names.size === 0 ? {} : { arguments: [...names] };
}
