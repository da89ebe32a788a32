/**
 * Public names of tools and prompts. A name follows from the configured servers, the source and its own list,
 * never from who connected first or is up now:
 *
 * - The template gives every server a pattern of names. Where another server's pattern could give the same name,
 *   the name belongs to the more specific pattern, between equals to the smaller id, and the other server's tool gets
 *   a hash, whether the owner is up or not, and whether it has such a tool or not. A server of a project config comes
 *   after all others, however specific its pattern is: otherwise it could take a name out of the reach of a rule.
 * - In-process tools keep their own names, so a server's tool with the same name gets a hash.
 * - Names of one server that become the same because characters were replaced get a hash each; one that needed no
 *   replacing keeps its name.
 * - A name that already ends like a hash gets a hash, so that plain and hashed names never meet.
 *
 * What a session brings is named after all that: a name that the hub has, or that belongs to a pattern of the hub, is
 * never a plain name of the session's.
 */
import { createHash } from "node:crypto";
import { NamePattern } from "./name-pattern.ts";
import { isSessionLocal } from "../model/local-source.ts";
import type { Source } from "../model/source.ts";
import { cleanCharacters, isReservedName, MAX_NAME_LENGTH, providerName } from "./provider-name.ts";

const HASH_LENGTH = 10;
const LOOKS_HASHED = new RegExp(`-[0-9a-f]{${HASH_LENGTH}}$`);

export interface NamedServer {
  readonly id: string;
  /** Replaces `{server}` and its separator; "" gives bare names. */
  readonly toolPrefix?: string | undefined;
  /** Stands for the id in names. */
  readonly shownAs?: string | undefined;
  /** Brought by a project config: every name that a server of the home could have is that server's. */
  readonly fromProject?: true | undefined;
}

/** Names that somebody else has. */
export interface TakenNames {
  has(name: string): boolean;
}

const NONE: TakenNames = { has: () => false };

export class Naming {
  readonly #patterns = new Map<string, NamePattern>();
  /** For each server the patterns that come before its own and could give the same names. */
  readonly #owners = new Map<string, readonly NamePattern[]>();
  readonly #hosts: readonly NamePattern[];

  /** @param hosts Servers of the hub, where the others are those of a session. */
  constructor(template: string, servers: readonly NamedServer[], hosts: readonly NamedServer[] = []) {
    const patternOf = (server: NamedServer): NamePattern =>
      new NamePattern(template, server.id, server.toolPrefix, server.shownAs);
    this.#hosts = hosts.map(patternOf);
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
        [...hostsBefore, ...before].filter((other) => other.mayMeet(pattern)),
      );
      before.push(pattern);
    }
  }

  /** Tells of servers none of whose names can be plain, because another server has the same pattern. */
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
  serverNames(server: string, names: readonly string[], taken: TakenNames): Map<string, string> {
    const pattern = this.#patterns.get(server);
    const owners = this.#owners.get(server) ?? [];
    return assign(server, names, {
      render: (name) => pattern?.render(name) ?? name,
      clean: providerName,
      belongsToOther: (plain) =>
        LOOKS_HASHED.test(plain) || taken.has(plain) || owners.some((owner) => owner.couldGive(plain)),
    });
  }

  /** Public names of in-process capabilities and of skills: their own, as far as providers can take them. */
  localNames(
    { id, kind }: Pick<Source, "id" | "kind">,
    names: readonly string[],
    taken: TakenNames = NONE,
  ): Map<string, string> {
    if (isSessionLocal(id)) return this.#sessionNames(id, names, taken);
    const clean = kind === "skills" ? cleanCharacters : providerName;
    return assign(id, names, { render: (name) => name, clean, belongsToOther: () => false });
  }

  /** Reserved names among them are Toolcrib's own, and nobody else's. */
  #sessionNames(id: string, names: readonly string[], taken: TakenNames): Map<string, string> {
    const isHosts = (plain: string): boolean =>
      this.#hosts.some((host) => host.specificity > 0 && host.couldGive(plain));
    return assign(id, names, {
      render: (name) => name,
      clean: cleanCharacters,
      belongsToOther: (plain) =>
        !isReservedName(plain) && (LOOKS_HASHED.test(plain) || taken.has(plain) || isHosts(plain)),
    });
  }
}

interface Rules {
  render(name: string): string;
  /** Provider-safe but for its length. */
  clean(text: string): string;
  belongsToOther(plain: string): boolean;
}

function assign(source: string, names: readonly string[], rules: Rules): Map<string, string> {
  const rendered = names.map((name) => {
    const text = rules.render(name);
    return { name, text, plain: rules.clean(text) };
  });
  const count = new Map<string, number>();
  for (const { plain } of rendered) count.set(plain, (count.get(plain) ?? 0) + 1);

  const result = new Map<string, string>();
  for (const { name, text, plain } of rendered) {
    const shared = text !== plain && (count.get(plain) ?? 0) > 1;
    const needsHash = shared || plain.length > MAX_NAME_LENGTH || rules.belongsToOther(plain);
    result.set(name, needsHash ? withHash(plain, source, name) : plain);
  }
  return result;
}

function withHash(plain: string, source: string, name: string): string {
  // JSON keeps ("a", "bc") and ("ab", "c") apart.
  const hash = createHash("sha256")
    .update(JSON.stringify([source, name]))
    .digest("hex")
    .slice(0, HASH_LENGTH);
  return `${plain.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}-${hash}`;
}
