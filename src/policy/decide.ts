/** Rules in, Decision out. */
import type { Capability } from "../model/capability.ts";
import type { Decision, Rule } from "../model/decision.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import type { SessionRules, ToolRules } from "../model/server-spec.ts";
import { spellingsOf } from "./canonical-uri.ts";
import { type Matchable, PatternList } from "./pattern.ts";

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

export interface Explanation {
  readonly decision: Decision;
  readonly steps: readonly PolicyStep[];
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
  readonly #project: { readonly rules: RuleList; readonly where: string } | undefined;
  readonly #servers = new Map<string, Compiled<ServerPolicy>>();
  readonly #roles = new Map<string, Compiled<RolePolicy>>();
  readonly #knownRoles: ReadonlySet<string>;
  readonly #sessionRules = new WeakMap<SessionRules, CompiledSession>();
  readonly #replacedRules = new WeakMap<ToolRules, RuleList>();

  constructor(options: PolicyOptions) {
    this.#where = options.where;
    this.#hub = new RuleList("hub", options.hub, options.where);
    const { project } = options;
    this.#project = project && { rules: new RuleList("project", project.rules, project.where), where: project.where };
    for (const [id, policy] of options.servers) {
      this.#servers.set(id, { policy, rules: new RuleList("server", policy.rules ?? {}, policy.where) });
    }
    for (const [name, policy] of options.roles ?? []) {
      this.#roles.set(name, { policy, rules: new RuleList("role", policy.rules ?? {}, policy.where) });
    }
    const named = [...options.servers.values()].flatMap(({ roles = [] }) => roles);
    this.#knownRoles = new Set([...this.#roles.keys(), ...named]);
  }

  /** Whether anything names the role. To one that nothing names everything is denied. */
  knowsRole(name: string): boolean {
    return this.#knownRoles.has(name);
  }

  decide(subject: PolicySubject, who: PolicyActor): Decision {
    return this.explain(subject, who).decision;
  }

  /** The decision, with what each level said on the way. */
  explain(subject: PolicySubject, who: PolicyActor): Explanation {
    const steps = this.#steps(subject, who);
    const deny = steps.find((step) => step.verdict === "deny");
    if (deny?.rule) return { decision: { verdict: "deny", rule: deny.rule }, steps };
    const ask = steps.find((step) => step.verdict === "ask");
    if (ask?.rule) return { decision: { verdict: "ask", rule: ask.rule }, steps };
    const grant = steps.findLast((step) => step.verdict === "allow")?.rule ?? null;
    return { decision: { verdict: "allow", rule: grant }, steps };
  }

  #steps(subject: PolicySubject, who: PolicyActor): PolicyStep[] {
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
    const steps = [...this.#admission(subject, who, narrowed, server?.policy, role?.policy)];
    steps.push(decideLevel("hub", this.#where, this.#hub, byPublicName, isTool));
    const project = this.#project;
    if (project !== undefined) steps.push(decideLevel("project", project.where, project.rules, byPublicName, isTool));
    if (server !== undefined)
      steps.push(decideLevel("server", server.policy.where, server.rules, byEitherName, isTool));
    const replaced = server?.policy.replaced;
    if (replaced !== undefined)
      steps.push(decideLevel("server", replaced.where, this.#compiled(replaced), byEitherName, isTool));
    const { mounted } = subject;
    if (mounted?.rules !== undefined) {
      const compiled = this.#compiled({ rules: mounted.rules, where: mounted.where });
      steps.push(decideLevel("server", mounted.where, compiled, byEitherName, isTool));
    }
    if (role !== undefined) steps.push(decideLevel("role", role.policy.where, role.rules, byPublicName, isTool));
    for (const rules of narrowed) {
      const byName = rules.ownNames === true ? byEitherName : byPublicName;
      const compiled = this.#compileSession(rules);
      const hasAllow = isTool && compiled.exempt?.match(byPublicName) === undefined;
      steps.push(decideLevel("session", THIS_SESSION, compiled.rules, byName, hasAllow));
    }
    return steps;
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

/** @param hasAllow Whether the list of what is allowed says anything about it. */
function decideLevel(
  level: Rule["level"],
  where: string,
  rules: RuleList,
  subject: Matchable,
  hasAllow: boolean,
): PolicyStep {
  const deny = rules.denying(subject) ?? (hasAllow ? rules.notAllowing(subject) : undefined);
  if (deny !== undefined) return denial(deny);
  const ask = rules.asking(subject);
  if (ask !== undefined) return { level, where, verdict: "ask", rule: ask };
  const grant = hasAllow ? rules.allowing(subject) : undefined;
  return { level, where, verdict: grant === undefined ? "silent" : "allow", rule: grant ?? null };
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

  constructor(level: Rule["level"], { allow, deny = [], ask = [] }: ToolRules, where: string) {
    this.#level = level;
    this.#where = where;
    this.#lists = {
      allow: allow === undefined ? null : new PatternList(allow),
      deny: new PatternList(deny),
      ask: new PatternList(ask),
    };
    this.#allowText = (allow ?? []).join(", ");
  }

  denying(subject: Matchable): Rule | undefined {
    return this.#rule("deny", this.#lists.deny.match(subject));
  }

  asking(subject: Matchable): Rule | undefined {
    return this.#rule("ask", this.#lists.ask.match(subject));
  }

  allowing(subject: Matchable): Rule | undefined {
    return this.#rule("allow", this.#lists.allow?.match(subject));
  }

  /**
   * The allow list as one rule, if there is a list and nothing of it matches. An empty list allows nothing.
   * What an `ask` entry names is allowed once approved, so it need not be in `allow` as well.
   */
  notAllowing(subject: Matchable): Rule | undefined {
    const { allow, ask } = this.#lists;
    if (allow === null || allow.match(subject) !== undefined || ask.match(subject) !== undefined) return undefined;
    return this.#rule("allow", this.#allowText);
  }

  #rule(list: "allow" | "deny" | "ask", pattern: string | undefined): Rule | undefined {
    return pattern === undefined ? undefined : { level: this.#level, list, pattern, where: this.#where };
  }
}
