/** Rules in, Decision out. */
import type { Capability } from "../model/capability.ts";
import type { Decision, Rule } from "../model/decision.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import { RuleList } from "./rule-list.ts";

export interface ServerPolicy {
  readonly rules?: ToolRules | undefined;
  readonly roles?: readonly string[] | undefined;
  /** Where the server's rules are written, for a person. */
  readonly where: string;
}

export interface PolicyOptions {
  readonly hub: ToolRules;
  /** Where the hub's rules are written, for a person. */
  readonly where: string;
  /** Every configured server, disabled ones too: together they say which roles exist. */
  readonly servers: ReadonlyMap<string, ServerPolicy>;
}

/** What somebody wants to see or use. */
export interface Subject {
  readonly kind: Capability["kind"];
  /** Public name, or public URI of a resource or template. */
  readonly publicName: string;
  readonly originName: string;
  /** The server id; null for in-process tools. */
  readonly server: string | null;
  readonly ownerOnly?: boolean | undefined;
}

export interface Who {
  readonly role?: string | undefined;
  /** True for a session of the user who runs the hub. */
  readonly owner: boolean;
}

interface CompiledServer {
  readonly policy: ServerPolicy;
  readonly rules: RuleList;
}

/**
 * A server's rules narrow the hub's and never widen them; within one level deny beats allow.
 * `deny` holds for every kind, by name or URI. `allow` holds for tools only: it stands under `tools`, and a list of
 * tool names that silently hid every resource and prompt would surprise.
 */
export class Policy {
  readonly #where: string;
  readonly #hub: RuleList;
  readonly #servers = new Map<string, CompiledServer>();
  readonly #roles = new Set<string>();

  constructor(options: PolicyOptions) {
    this.#where = options.where;
    this.#hub = new RuleList("hub", options.hub, options.where);
    for (const [id, policy] of options.servers) {
      this.#servers.set(id, { policy, rules: new RuleList("server", policy.rules ?? {}, policy.where) });
      for (const role of policy.roles ?? []) this.#roles.add(role);
    }
  }

  decide(subject: Subject, who: Who): Decision {
    const server = subject.server === null ? undefined : this.#servers.get(subject.server);
    const allowApplies = subject.kind === "tool";
    // Hub rules speak of public names; a server's rules may also use the names that the server itself gives.
    const hubNames = [subject.publicName];
    const serverNames = [subject.originName, subject.publicName];

    const refusal =
      this.#refusedByRole(server, who) ??
      refusedByOwnership(subject, who) ??
      this.#hub.denying(hubNames) ??
      server?.rules.denying(serverNames) ??
      (allowApplies ? (this.#hub.notAllowing(hubNames) ?? server?.rules.notAllowing(serverNames)) : undefined);
    if (refusal !== undefined) return { verdict: "deny", rule: refusal };

    const grant = allowApplies ? (server?.rules.allowing(serverNames) ?? this.#hub.allowing(hubNames)) : undefined;
    return { verdict: "allow", rule: grant ?? null };
  }

  /** A session without a role is either the owner's, who sees all, or a guest's, who sees what names no roles. */
  #refusedByRole(server: CompiledServer | undefined, who: Who): Rule | undefined {
    if (who.role !== undefined && !this.#roles.has(who.role)) {
      return { level: "role", list: "roles", pattern: who.role, where: `${this.#where}: no server names this role` };
    }
    const roles = server?.policy.roles;
    if (server === undefined || roles === undefined) return undefined;
    const admitted = who.role === undefined ? who.owner : roles.includes(who.role);
    if (admitted) return undefined;
    return { level: "server", list: "roles", pattern: roles.join(", "), where: server.policy.where };
  }
}

function refusedByOwnership(subject: Subject, who: Who): Rule | undefined {
  if (subject.ownerOnly !== true || who.owner) return undefined;
  return { level: "tool", list: "ownerOnly", pattern: subject.publicName, where: "the tool's own definition" };
}
