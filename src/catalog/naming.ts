/**
 * Public names of tools and prompts. A name follows from the configured servers, the source and its own list,
 * never from who connected first or is up now:
 *
 * - The template makes a pattern of names for every server. If another server's pattern could produce the same name,
 *   the name belongs to the more specific pattern, between equals to the smaller id, and the other server's tool gets
 *   a hash, whether the owner is up or not, and whether it has such a tool or not. A server of a project config comes
 *   after all others, however specific its pattern is: otherwise it could take a name out of the reach of a rule.
 * - In-process tools keep their own names, so a server's tool with the same name gets a hash.
 * - Names of one server that become the same because characters were replaced get a hash each; one that needed no
 *   replacing keeps its name.
 * - A name that already ends like a hash gets a hash, so that plain and hashed names never meet.
 * - A name that an override gives a tool is that tool's: another tool of the server with the same name gets a hash.
 *
 * Capabilities of a session are named last: a name that the hub has, or that belongs to a pattern of the hub, is
 * never a plain name of the session's.
 */
import { createHash } from "node:crypto";
import { isSessionLocalSource } from "../model/capability.ts";
import type { Overrides } from "../model/server-spec.ts";
import type { Source } from "../model/source.ts";

const HASH_LENGTH = 10;
const LOOKS_HASHED = new RegExp(`-[0-9a-f]{${HASH_LENGTH}}$`);

export interface NamedServer {
  readonly id: string;
  /** Replaces `{server}` and its separator; "" means bare names. */
  readonly toolPrefix?: string;
  /** Stands for the id in names. */
  readonly shownAs?: string;
  /** Brought by a project config: every name that a server of the home could have is that server's. */
  readonly fromProject?: true;
  /** Of its tools, by their own names. */
  readonly overrides?: Overrides | undefined;
  /** Where it is written. */
  readonly origin?: { readonly file: string };
}

/** Names that are already taken. */
export interface TakenNames {
  has(name: string): boolean;
}

export class Naming {
  readonly #patterns = new Map<string, NamePattern>();
  /** For each server, the patterns with precedence over its own that could produce the same names. */
  readonly #owners = new Map<string, readonly NamePattern[]>();
  readonly #hosts: readonly NamePattern[];
  readonly #template: string;

  /** @param hosts Servers of the hub, where the others are those of a session. */
  constructor(template: string, servers: readonly NamedServer[], hosts: readonly NamedServer[] = []) {
    const patternOf = (server: NamedServer): NamePattern =>
      new NamePattern(template, server.id, server.toolPrefix, server.shownAs);
    this.#hosts = hosts.map(patternOf);
    this.#template = template;
    const added = new Set(servers.filter(({ fromProject }) => fromProject === true).map(({ id }) => id));
    const rankOf = ({ server }: NamePattern): number => (added.has(server) ? 1 : 0);
    const ranked = servers
      .map(patternOf)
      .toSorted((a, b) => rankOf(a) - rankOf(b) || b.specificity - a.specificity || (a.server < b.server ? -1 : 1));
    const before: NamePattern[] = [];
    for (const pattern of ranked) {
      // A host with bare names could have any: what it really has is among the taken names.
      const hostsBefore = this.#hosts.filter((host) => host.specificity >= pattern.specificity);
      this.#patterns.set(pattern.server, pattern);
      this.#owners.set(
        pattern.server,
        [...hostsBefore, ...before].filter((other) => other.canOverlap(pattern)),
      );
      before.push(pattern);
    }
  }

  /** Warns about servers whose names all end in a hash, because another server has the same pattern. */
  warnings(): string[] {
    const messages: string[] = [];
    for (const [id, pattern] of this.#patterns) {
      const owner = this.#owners.get(id)?.find((other) => other.equals(pattern));
      if (owner === undefined) continue;
      messages.push(
        `Servers ${owner.server} and ${id} give their tools the same prefix, so every name of ${id} ends in a hash. ` +
          `Set another toolPrefix for ${id}.`,
      );
    }
    return messages;
  }

  /**
   * Public names by the server's own names, which must be unique.
   * `taken` are the public names of in-process capabilities of the same kind, and the hub's where a session brings them.
   */
  serverNames(
    server: string,
    names: readonly string[],
    taken: TakenNames,
    overrides: Overrides = {},
  ): Map<string, string> {
    const pattern = this.#patterns.get(server);
    const owners = this.#owners.get(server) ?? [];
    const chosen = new Map(
      names.flatMap((name) => {
        const given = Object.hasOwn(overrides, name) ? overrides[name]?.name : undefined;
        return given === undefined ? [] : [[name, given] as const];
      }),
    );
    const claimed = new Set(chosen.values());
    return assignNames(server, names, {
      render: (name) => {
        const own = chosen.get(name) ?? name;
        return pattern?.render(own) ?? own;
      },
      isTaken: (name) => !chosen.has(name) && claimed.has(name),
      clean: providerName,
      belongsToOther: (plain) =>
        LOOKS_HASHED.test(plain) || taken.has(plain) || owners.some((owner) => owner.canProduce(plain)),
    });
  }

  /**
   * Public names of in-process capabilities: their own, as far as providers can take them.
   * @param base Names that the hub has, where a session brings these.
   */
  localNames({ id }: Pick<Source, "id">, names: readonly string[], base?: TakenNames): Map<string, string> {
    if (base !== undefined && isSessionLocalSource(id)) return this.#sessionNames(id, names, base);
    return assignNames(id, names, {
      render: (name) => name,
      isTaken: () => false,
      clean: providerName,
      belongsToOther: () => false,
    });
  }

  /**
   * Public names of skills: the template filled in for a server `skill`, so that `skill__weather` has the separator of all names.
   * @param taken Names of in-process capabilities.
   */
  skillNames(id: string, names: readonly string[], taken: TakenNames): Map<string, string> {
    const render = (name: string): string =>
      name.split("__").reduceRight((inner, part) => new NamePattern(this.#template, part, undefined).render(inner));
    return assignNames(id, names, {
      render,
      isTaken: () => false,
      clean: (text) => (isReservedName(text) ? cleanCharacters(text) : providerName(text)),
      belongsToOther: (plain) => !isReservedName(plain) && (LOOKS_HASHED.test(plain) || taken.has(plain)),
    });
  }

  /** Reserved names among them are Toolcrib's own. */
  #sessionNames(id: string, names: readonly string[], taken: TakenNames): Map<string, string> {
    const isHosts = (plain: string): boolean =>
      this.#hosts.some((host) => host.specificity > 0 && host.canProduce(plain));
    return assignNames(id, names, {
      render: (name) => name,
      isTaken: () => false,
      clean: cleanCharacters,
      belongsToOther: (plain) =>
        !isReservedName(plain) && (LOOKS_HASHED.test(plain) || taken.has(plain) || isHosts(plain)),
    });
  }
}

interface AssignRules {
  render(name: string): string;
  /** Whether an override gives another tool this name. */
  isTaken(name: string): boolean;
  /** Provider-safe but for its length. */
  clean(text: string): string;
  belongsToOther(plain: string): boolean;
}

function assignNames(source: string, names: readonly string[], rules: AssignRules): Map<string, string> {
  const rendered = names.map((name) => {
    const text = rules.render(name);
    return { name, text, plain: rules.clean(text) };
  });
  const count = new Map<string, number>();
  for (const { plain } of rendered) count.set(plain, (count.get(plain) ?? 0) + 1);

  const result = new Map<string, string>();
  for (const { name, text, plain } of rendered) {
    const shared = text !== plain && (count.get(plain) ?? 0) > 1;
    const needsHash = shared || rules.isTaken(name) || plain.length > MAX_NAME_LENGTH || rules.belongsToOther(plain);
    result.set(name, needsHash ? withHash(plain, source, name) : plain);
  }
  return result;
}

/** The name with a hash of what it names. */
export function withHash(plain: string, source: string, name: string): string {
  // JSON keeps ("a", "bc") and ("ab", "c") apart.
  const hash = createHash("sha256")
    .update(JSON.stringify([source, name]))
    .digest("hex")
    .slice(0, HASH_LENGTH);
  return `${plain.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}-${hash}`;
}

const TOOL = "{tool}";
const SERVER = "{server}";

/** The naming template filled in for one server: a fixed beginning and end around the server's own names. */
export class NamePattern {
  readonly server: string;
  readonly #before: string;
  readonly #after: string;
  readonly #cleanBefore: string;
  readonly #cleanAfter: string;

  /** @param shownAs The name of the server in public names; its id if absent. */
  constructor(template: string, server: string, toolPrefix: string | undefined, shownAs: string = server) {
    this.server = server;
    const [before, after] = fillTemplate(template, shownAs, toolPrefix);
    this.#before = before;
    this.#after = after;
    this.#cleanBefore = cleanCharacters(before);
    this.#cleanAfter = cleanCharacters(after);
  }

  render(name: string): string {
    return this.#before + name + this.#after;
  }

  /** How much of a name the pattern fixes. */
  get specificity(): number {
    return this.#cleanBefore.length + this.#cleanAfter.length;
  }

  /** Whether a tool of the server could get this public name. */
  canProduce(publicName: string): boolean {
    if (this.#fits(publicName)) return true;
    const unled = publicName.startsWith(NAME_LEAD) ? publicName.slice(NAME_LEAD.length) : "";
    return unled !== "" && needsLead(unled) && this.#fits(unled);
  }

  /** False only where no public name can come from both; spares the common case of unrelated prefixes all checks. */
  canOverlap(other: NamePattern): boolean {
    const [a, b] = [this.#cleanBefore, other.#cleanBefore];
    if (!isPrefixOfEither(a, b) && !isPrefixOfEither(NAME_LEAD + a, b) && !isPrefixOfEither(a, NAME_LEAD + b))
      return false;
    return this.#cleanAfter.endsWith(other.#cleanAfter) || other.#cleanAfter.endsWith(this.#cleanAfter);
  }

  equals(other: NamePattern): boolean {
    return this.#cleanBefore === other.#cleanBefore && this.#cleanAfter === other.#cleanAfter;
  }

  #fits(clean: string): boolean {
    return clean.length > this.specificity && clean.startsWith(this.#cleanBefore) && clean.endsWith(this.#cleanAfter);
  }
}

function isPrefixOfEither(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

function fillTemplate(
  template: string,
  server: string,
  toolPrefix: string | undefined,
): [before: string, after: string] {
  const at = template.indexOf(TOOL);
  const before = at < 0 ? template : template.slice(0, at);
  const after = at < 0 ? "" : template.slice(at + TOOL.length);
  if (toolPrefix === undefined) return [before.replaceAll(SERVER, server), after.replaceAll(SERVER, server)];
  // "" promises the bare tool name, so the rest of the template goes too.
  if (toolPrefix === "") return ["", ""];
  // The separator is the text between {server} and {tool}, on either side.
  const serverBefore = before.indexOf(SERVER);
  if (serverBefore >= 0) return [before.slice(0, serverBefore) + toolPrefix, after];
  const serverAfter = after.indexOf(SERVER);
  if (serverAfter >= 0) return [before, toolPrefix + after.slice(serverAfter + SERVER.length)];
  return [before + toolPrefix, after];
}

/** The names that model providers accept: `^[A-Za-z][A-Za-z0-9_-]{0,63}$`. */
export const MAX_NAME_LENGTH = 64;

/** Stands before a name that does not begin with a letter, or that would be a reserved one. */
const NAME_LEAD = "t-";

const RESERVED = /^(?:skill__|toolcrib_)/;

export const PLAN_TOOL = "toolcrib_plan";
export const SKILL_TOOL = "toolcrib_skill";
export const READ_TOOL = "toolcrib_read";

/** They serve the agent's own run: others who use its session do without them. */
export const AGENT_TOOLS: readonly string[] = [PLAN_TOOL, SKILL_TOOL, READ_TOOL];

/** Names that only Toolcrib itself uses. */
export function isReservedName(name: string): boolean {
  return RESERVED.test(name);
}

/** Every other character becomes `-`. */
export function cleanCharacters(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/gu, "-");
}

function needsLead(clean: string): boolean {
  return !/^[A-Za-z]/.test(clean) || isReservedName(clean);
}

/** Provider-safe but for its length. */
function providerName(text: string): string {
  const clean = cleanCharacters(text);
  return needsLead(clean) ? NAME_LEAD + clean : clean;
}
