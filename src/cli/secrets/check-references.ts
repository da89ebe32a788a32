/** Looks up every reference of a config and tells of each whether there is a value, never which. */
import type { LoadedConfig } from "../../config/load-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { parseReferences, type Reference } from "../../secrets/references.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import { specStrings } from "../../secrets/spec-strings.ts";

export interface CheckedReference {
  readonly reference: string;
  /** `default` where a variable is not set and its default counts. */
  readonly provider: string;
  /** null for a value that each user has of their own. */
  readonly found: boolean | null;
  /** Characters of the value. */
  readonly length?: number;
  readonly reason?: string;
  readonly hint?: string;
  readonly usedIn: readonly string[];
}

interface Place {
  readonly where: string;
  readonly text: string;
  readonly baseDir: string;
}

/** Keys of the file whose strings are looked up, besides the servers. */
const OTHER_KEYS = ["roles", "http", "agent", "store", "audit"] as const;

export async function checkReferences(
  config: LoadedConfig,
  secrets: Secrets,
  signal?: AbortSignal,
): Promise<CheckedReference[]> {
  const uses = new Map<string, { place: Place; reference: Reference | ToolcribError; usedIn: string[] }>();
  for (const place of placesOf(config)) {
    for (const reference of referencesOf(place.text)) {
      const name = reference instanceof ToolcribError ? reference.message : reference.text;
      const key = JSON.stringify([name, place.baseDir]);
      const known = uses.get(key);
      if (known === undefined) uses.set(key, { place, reference, usedIn: [place.where] });
      else if (!known.usedIn.includes(place.where)) known.usedIn.push(place.where);
    }
  }
  return Promise.all(
    [...uses.values()].map(async ({ place, reference, usedIn }) => ({
      ...(await check(reference, place, secrets, signal)),
      usedIn,
    })),
  );
}

type Checked = Omit<CheckedReference, "usedIn">;

async function check(
  reference: Reference | ToolcribError,
  { baseDir }: Place,
  secrets: Secrets,
  signal: AbortSignal | undefined,
): Promise<Checked> {
  if (reference instanceof ToolcribError) {
    return { reference: String(reference.details?.["reference"]), provider: "none", ...failure(reference) };
  }
  const { text } = reference;
  const provider = reference.kind === "variable" ? "env" : reference.provider;
  if (provider === "user") {
    return { reference: text, provider, found: null, reason: "looked up for each user who connects" };
  }
  try {
    const { value, looked } = await secrets.resolve(text, { baseDir, signal });
    return { reference: text, provider: looked.length === 0 ? "default" : provider, found: true, length: value.length };
  } catch (error) {
    if (!(error instanceof ToolcribError)) throw error;
    return { reference: text, provider, ...failure(error, text) };
  }
}

function failure({ message, hint }: ToolcribError, reference = ""): Pick<Checked, "found" | "reason" | "hint"> {
  const reason = message.startsWith(`${reference} `) ? message.slice(reference.length + 1) : message;
  return { found: false, reason, hint };
}

function placesOf({ servers, config, baseDir }: LoadedConfig): Place[] {
  const ofServers = servers.flatMap((spec) =>
    specStrings(spec).map(({ where, text }) => ({ where: `${spec.id}: ${where}`, text, baseDir: spec.baseDir })),
  );
  const others = OTHER_KEYS.flatMap((key) => strings(config[key], key).map((place) => ({ ...place, baseDir })));
  return [...ofServers, ...others];
}

function strings(value: unknown, where: string): { where: string; text: string }[] {
  if (typeof value === "string") return [{ where, text: value }];
  if (Array.isArray(value)) return value.flatMap((each, index) => strings(each, `${where}[${index}]`));
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, each]) => strings(each, `${where}.${key}`)) : [];
}

/** A broken reference is one that will not be found. */
function referencesOf(text: string): (Reference | ToolcribError)[] {
  try {
    return parseReferences(text).filter((part) => typeof part !== "string");
  } catch (error) {
    if (error instanceof ToolcribError) return [error];
    throw error;
  }
}
