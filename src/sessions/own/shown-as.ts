/** What stands for a session's server in public names: its own name, unless a server of the hub has it. */
import { NamePattern } from "../../catalog/name-pattern.ts";
import type { NamedServer } from "../../catalog/naming.ts";

const SERVER = "{server}";

interface Naming {
  readonly naming: string;
  /** Every configured server of the hub, up or not. */
  readonly servers: readonly NamedServer[];
}

export function shownAs(name: string, { naming, servers }: Naming): string {
  // Without the server in them, names are told apart by hashes.
  if (!naming.includes(SERVER)) return name;
  const hosts = servers.map(({ id, toolPrefix }) => new NamePattern(naming, id, toolPrefix));
  const isFree = (candidate: string): boolean => {
    const pattern = new NamePattern(naming, candidate, undefined);
    return !hosts.some((host) => host.equals(pattern));
  };
  return [name, `session-${name}`].find(isFree) ?? `session-${name}`;
}
