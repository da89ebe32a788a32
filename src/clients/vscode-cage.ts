/** VS Code's sandbox of a server in our words. Ours is never the wider one. */
import { isJsonObject, type JsonObject } from "../model/json.ts";

export interface VscodeCage {
  /** The `sandbox` of the entry. */
  readonly sandbox: JsonObject;
  /** What VS Code allows and this does not; a person may want to name it. */
  readonly narrower: readonly string[];
}

/** @param rules The entry's `sandbox`, which only counts with `sandboxEnabled`. */
export function vscodeCage(rules: unknown): VscodeCage {
  const { filesystem, network } = isJsonObject(rules) ? rules : {};
  const files = isJsonObject(filesystem) ? filesystem : {};
  const domains = textsOf(isJsonObject(network) ? network["allowedDomains"] : undefined);
  const denied = [...textsOf(files["denyRead"]), ...textsOf(files["denyWrite"])];
  const wanted = textsOf(files["allowWrite"]);
  // A path of which a part is forbidden, or a pattern, cannot be said here.
  const write = wanted.filter((path) => !/[*?[]/.test(path) && !denied.some((each) => isAtOrIn(each, path)));
  return {
    sandbox: { kind: "bubblewrap", ...(write.length === 0 ? {} : { write }) },
    narrower: [
      "it reads only the system and what sandbox.read names",
      ...(write.length === wanted.length ? [] : ["paths with patterns or exceptions may not be written"]),
      ...(domains.length === 0 ? [] : ["it has no network, for single domains cannot be allowed"]),
    ],
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function isAtOrIn(path: string, folder: string): boolean {
  const bare = folder.replace(/[/\\]+$/, "");
  return path === bare || path.startsWith(`${bare}/`) || path.startsWith(`${bare}\\`);
}
