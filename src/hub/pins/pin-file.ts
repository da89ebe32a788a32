/** `toolcrib.lock`: the pinned definitions as a file that people read, compare and share. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { assertSafeFile } from "../../files/safe-place.ts";
import { realTarget, writeAtomic } from "../../files/write-atomic.ts";
import { fingerprint } from "../../guard/fingerprint.ts";
import type { Pin } from "../../guard/pins/compare.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ToolDefinition } from "../../model/protocol.ts";

const VERSION = 1;
const NAME = "toolcrib.lock";

/** By server id, then by the tool's own name. */
export type PinTable = ReadonlyMap<string, ReadonlyMap<string, Pin>>;

/** Beside a config file of Toolcrib's own; in the home for another program's file, whose folder is not ours. */
export function pinFileFor(configFile: string | null, home: string): string {
  if (configFile === null) return join(home, NAME);
  if (/^toolcrib.*\.jsonc?$/.test(basename(configFile))) return join(dirname(configFile), NAME);
  const id = createHash("sha256").update(configFile).digest("hex").slice(0, 12);
  return join(home, "locks", `${id}.lock`);
}

/** Whether the lock file of a config stands beside it, for people to share. */
export function isSharedPinFile(file: string): boolean {
  return basename(file) === NAME;
}

/** Changes whenever the file does; undefined where there is none. */
export function pinFileStamp(file: string): string | undefined {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? undefined : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
  } catch {
    // A folder that may not be entered: reading says why.
    return "unreadable";
  }
}

/** undefined where there is no file. Throws `invalid_config` for one that cannot be used. */
export function readPinFile(file: string): PinTable | undefined {
  let text: string;
  assertSafeFile(file);
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw unusable(file, `cannot be read (${code})`, "Make it readable.");
  }
  return parsePins(file, text);
}

/**
 * Reads, changes and writes under a lock, so that no process undoes what another wrote meanwhile. `change` gets
 * undefined where there is no file.
 */
export async function updatePinFile(file: string, change: (pins: PinTable | undefined) => PinTable): Promise<PinTable> {
  const target = await realTarget(file);
  await mkdir(dirname(target), { recursive: true });
  return withLock(target, async () => {
    const before = readPinFile(file);
    const after = change(before);
    if (renderPins(after) !== renderPins(before ?? new Map())) await writePinFile(target, after);
    return after;
  });
}

export async function writePinFile(file: string, pins: PinTable): Promise<void> {
  assertSafeFile(file);
  await writeAtomic(await realTarget(file), renderPins(pins), { mode: 0o644 });
}

function parsePins(file: string, text: string): PinTable {
  const value = parseJson(file, text);
  if (!isJsonObject(value) || !isJsonObject(value["servers"])) throw damaged(file, "has no servers");
  const version = value["version"];
  if (typeof version === "number" && version > VERSION) {
    throw unusable(file, `has version ${version}, and this Toolcrib knows ${VERSION}`, "Use a newer Toolcrib.");
  }
  if (version !== VERSION) throw damaged(file, "has no known version");
  const servers = Object.entries(value["servers"]).map(([id, server]): [string, Map<string, Pin>] => {
    const tools = isJsonObject(server) ? server["tools"] : undefined;
    if (!isJsonObject(tools)) throw damaged(file, `says nothing usable of the server ${id}`);
    return [id, new Map(Object.entries(tools).map(([name, pin]) => [name, checkedPin(file, id, name, pin)]))];
  });
  return new Map(servers);
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A merge of two branches that went wrong is the likely cause.
    throw damaged(file, /^(<<<<<<<|>>>>>>>)/m.test(text) ? "holds the marks of an unfinished merge" : "is no JSON");
  }
}

/** The definition is what counts. A fingerprint that is not its own means that it was edited by hand or by someone. */
export function checkedPin(file: string, server: string, name: string, pin: unknown): Pin {
  const where = `${server} ${name}`;
  if (!isJsonObject(pin) || !isDefinition(pin["definition"])) throw damaged(file, `holds no definition for ${where}`);
  const { definition, fingerprint: print, pinnedAt } = pin;
  if (typeof print !== "string" || print !== fingerprint(definition)) {
    throw damaged(file, `holds a definition for ${where} that does not have the fingerprint beside it`);
  }
  return { fingerprint: print, definition, pinnedAt: typeof pinnedAt === "string" ? pinnedAt : "" };
}

function isDefinition(value: unknown): value is ToolDefinition {
  return isJsonObject(value) && typeof value["name"] === "string" && isJsonObject(value["inputSchema"]);
}

export function renderPins(pins: PinTable): string {
  const servers = sortedObject(pins, (tools) => ({
    tools: sortedObject(tools, (pin) => ({
      definition: sorted(pin.definition),
      fingerprint: pin.fingerprint,
      pinnedAt: pin.pinnedAt,
    })),
  }));
  return `${JSON.stringify({ version: VERSION, servers }, null, 2)}\n`;
}

function sortedObject<T>(map: ReadonlyMap<string, T>, render: (value: T) => unknown): JsonObject {
  const entries = [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
  // fromEntries makes own properties of names such as `__proto__` too.
  return Object.fromEntries(entries.map(([key, value]) => [key, render(value)]));
}

/** The same value with its keys in order, so that a change of order upstream is no change here. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  return sortedObject(new Map(Object.entries(value)), sorted);
}

function damaged(file: string, what: string): ToolcribError {
  return unusable(
    file,
    what,
    "Bring back an earlier version of it, or remove it: what is known is written again, and `toolcrib pins reset` forgets that.",
  );
}

function unusable(file: string, what: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `The pins in ${file} cannot be used: it ${what}.`, {
    hint,
    details: { file },
  });
}
