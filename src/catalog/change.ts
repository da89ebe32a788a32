import type { Capability } from "../model/capability.ts";
import type { Tables } from "./snapshot.ts";
import { KINDS, type Kind } from "./source-view.ts";
import { isSameCapability, type KindTable } from "./table.ts";

/** How one version differs from the one before. Names are public; those of all kinds stand together. */
export interface CatalogChange {
  readonly version: number;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Same name, other definition or other origin. */
  readonly changed: readonly string[];
  /** The kinds whose lists differ; also those where only the order does. */
  readonly kinds: readonly Kind[];
}

/** Undefined if nothing differs. */
export function changeBetween(before: Tables, after: Tables, version: number): CatalogChange | undefined {
  const added: string[] = [];
  const removed: string[] = [];
  const changed: string[] = [];
  const kinds: Kind[] = [];
  for (const kind of KINDS) {
    const [old, next]: [KindTable<Capability>, KindTable<Capability>] = [before[kind], after[kind]];
    if (isSameList(old.list, next.list)) continue;
    kinds.push(kind);
    for (const capability of next.list) {
      const previous = old.byName.get(capability.name);
      if (previous === undefined) added.push(capability.name);
      else if (!isSameCapability(previous, capability)) changed.push(capability.name);
    }
    for (const capability of old.list) if (!next.byName.has(capability.name)) removed.push(capability.name);
  }
  return kinds.length === 0 ? undefined : { version, added, removed, changed, kinds };
}

function isSameList(a: readonly Capability[], b: readonly Capability[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((capability, i) => isSame(capability, b[i]));
}

function isSame(a: Capability, b: Capability | undefined): boolean {
  return b !== undefined && isSameCapability(a, b);
}
