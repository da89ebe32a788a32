/** What importing servers into a config would do with each of them. */
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type ServerEntry, type ServerEntryInput, ServerEntrySchema, type ServerSpec } from "../model/server-spec.ts";

export interface ImportStep {
  /** The id in the file that is read. */
  readonly from: string;
  /** The id here; another one for `rename`, and for a server that is there already under another id. */
  readonly id: string;
  readonly entry: ServerEntryInput;
  /** `conflict`: the id is taken by a different server. `same`: it is there already. */
  readonly action: "add" | "replace" | "rename" | "same" | "conflict";
}

export function planImport(
  incoming: readonly ServerSpec[],
  present: readonly ServerSpec[],
  onConflict: "replace" | "rename" | "refuse",
): ImportStep[] {
  const here = new Map(present.map((spec) => [spec.id, spec]));
  const taken = new Set([...here.keys(), ...incoming.map((spec) => spec.id)]);
  /** What each id means, with what the steps before bring. */
  const known = new Map(present.map((spec) => [spec.id, targetOf(entryToWrite(spec))]));
  return incoming.map((spec): ImportStep => {
    const entry = entryToWrite(spec);
    const existing = here.get(spec.id);
    const step = { from: spec.id, id: spec.id, entry };
    if (existing !== undefined && isDeepStrictEqual(entryToWrite(existing), entry)) return { ...step, action: "same" };
    const isWanted = existing !== undefined && onConflict === "replace";
    const twin = isWanted ? undefined : twinOf(spec.id, targetOf(entry), known);
    if (twin !== undefined) return { ...step, id: twin, action: "same" };
    known.set(spec.id, targetOf(entry));
    if (existing === undefined) return { ...step, action: "add" };
    switch (onConflict) {
      case "replace":
        return { ...step, action: "replace" };
      case "refuse":
        return { ...step, action: "conflict" };
      case "rename":
        return { ...step, id: freeId(spec.id, taken), action: "rename" };
    }
  });
}

/** What is started or called, as whom, and for whom. Two entries that agree on it are one server. */
function targetOf({ command, args = [], cwd, env = {}, url, headers = {}, tools, roles }: ServerEntryInput): object {
  return { ...(url === undefined ? { command, args, cwd, env } : { url, headers }), tools, roles };
}

/** The other id under which the same server is known. */
function twinOf(id: string, target: object, known: ReadonlyMap<string, object>): string | undefined {
  return [...known].find(([other, theirs]) => other !== id && isDeepStrictEqual(theirs, target))?.[0];
}

function freeId(wanted: string, taken: Set<string>): string {
  for (let number = 2; ; number += 1) {
    const id = `${wanted.slice(0, 58)}-${number}`;
    if (taken.has(id)) continue;
    taken.add(id);
    return id;
  }
}

/** The entry as a person would have written it: without defaults, and with paths that hold from any file. */
function entryToWrite({ id: _id, origin: _origin, baseDir, ...entry }: ServerSpec): ServerEntryInput {
  const defaults: ServerEntry = ServerEntrySchema.parse({});
  const written = Object.entries(entry).filter(([key, value]) => {
    // Both have the keys of ServerEntry; a key without a default compares with undefined.
    return value !== undefined && !isDeepStrictEqual(value, defaults[key as keyof ServerEntry]);
  });
  const cwd = entry.cwd === undefined ? {} : { cwd: resolve(baseDir, entry.cwd) };
  return { ...Object.fromEntries(written), ...cwd };
}
