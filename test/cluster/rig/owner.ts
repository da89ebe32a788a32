/** Where a server runs, by its processes and not by what nodes say of themselves. */
import { commandOf } from "../../../bench/processes.ts";
import type { NodeProcess } from "./node-process.ts";
import type { Rig } from "./rig.ts";

export interface Owner {
  readonly node: NodeProcess;
  readonly pid: number;
}

/** @param word A word of the server's command line that no other has. */
export function ownersOf(rig: Rig, word: string): Owner[] {
  return rig.nodes.flatMap((node) =>
    node
      .children()
      .filter((pid) => commandOf(pid).split(" ").includes(word))
      .map((pid) => ({ node, pid })),
  );
}

/** The one that there is. */
export function ownerOf(rig: Rig, word: string): Owner {
  const owners = ownersOf(rig, word);
  const [owner] = owners;
  if (owner === undefined || owners.length > 1) {
    throw new Error(`${word} runs ${owners.length} times: ${JSON.stringify(owners.map(({ node }) => node.name))}`);
  }
  return owner;
}
