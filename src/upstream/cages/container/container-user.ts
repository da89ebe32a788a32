/** Who the program is inside: not root where that can be, and the owner of the files that it is to work on. */
import { type Stats, statSync } from "node:fs";
import type { CageMount } from "../named-mounts.ts";
import type { ContainerEngine } from "./engine.ts";
import type { ContainerUser } from "./run-flags.ts";

const NOBODY = 65_534;

export interface OwnIds {
  readonly uid: number;
  readonly gid: number;
}

type UserMount = Pick<CageMount, "source" | "writable">;

/** @param own Of the hub's process; undefined on Windows. */
export function containerUser(
  engine: Pick<ContainerEngine, "kind" | "rootless">,
  mounts: readonly UserMount[],
  own: OwnIds | undefined = ownIds(),
): ContainerUser {
  if (engine.rootless && engine.kind === "podman" && own !== undefined) return { ...own, keepId: true };
  if (!engine.rootless && own !== undefined && own.uid !== 0) return { ...own, keepId: false };
  const owner = neededOwner(mounts);
  if (owner === undefined) return { uid: NOBODY, gid: NOBODY, keepId: false };
  // Rootless docker has no mapping as podman has: there the user outside is root inside, without capabilities.
  return engine.rootless ? { uid: 0, gid: 0, keepId: false } : { uid: owner.uid, gid: owner.gid, keepId: false };
}

/** Whose files can be worked on by nobody else; undefined if any user will do. */
function neededOwner(mounts: readonly UserMount[]): Stats | undefined {
  const look = ({ source }: UserMount): Stats | undefined => statSync(source, { throwIfNoEntry: false });
  const first = mounts.find(({ writable }) => writable);
  if (first !== undefined) return look(first);
  return mounts.map(look).find((found) => found !== undefined && !isForAll(found));
}

function isForAll(path: Stats): boolean {
  const wanted = path.isDirectory() ? 0o005 : 0o004;
  return (path.mode & wanted) === wanted;
}

function ownIds(): OwnIds | undefined {
  const uid = process.getuid?.();
  const gid = process.getgid?.();
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}
