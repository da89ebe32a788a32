/**
 * `store.json`: which database outside the home the home was last used with. Whoever comes without the config that names it
 * would otherwise take the home's own for it, and find everything gone.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomic } from "../files/write-atomic.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Store } from "../store/store.ts";

export function noteFile(home: string): string {
  return join(home, "store.json");
}

/** The address without its password; undefined if it was the home's own. */
export async function notedStore(home: string): Promise<string | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(noteFile(home), "utf8"));
    return isJsonObject(value) && typeof value["place"] === "string" ? value["place"] : undefined;
  } catch {
    return undefined;
  }
}

/** A home that cannot be written to has no note; nothing else depends on it. */
export async function noteStore(home: string, { kind, place }: Pick<Store, "kind" | "place">): Promise<void> {
  const noted = await notedStore(home);
  if (kind === "sqlite") {
    if (noted !== undefined) await rm(noteFile(home), { force: true }).catch(() => {});
  } else if (noted !== place) {
    await writeAtomic(noteFile(home), `${JSON.stringify({ kind, place })}\n`, { mode: 0o600 }).catch(() => {});
  }
}

export function otherStore(home: string, place: string): ToolcribError {
  return new ToolcribError(
    "invalid_config",
    `${home} was last used with the store ${place}, and there is no config here that names it.`,
    { hint: `Give the config with --config. If that store is not used any more, remove ${noteFile(home)}.` },
  );
}
