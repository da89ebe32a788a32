/** `toolcrib.lock`: the pinned definitions as a file that people read, compare and share. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { assertSafeFile } from "../../files/safe-place.ts";
import { realTarget, writeAtomic } from "../../files/write-atomic.ts";
import { fingerprint } from "../../guard/fingerprint.ts";
import { INSTRUCTIONS, type Pin, pinKey, type PinKind, type ServerPins } from "../../guard/pins/compare.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { terminalJson } from "../../model/visible-text.ts";
import { MASK } from "../../secrets/mask.ts";

/** 1 knew tools only. Its servers have no pin of their instructions, by which the rest counts as not seen yet. */
const VERSION = 2;
const NAME = "toolcrib.lock";

/** The keys of a server in the file, for what it may have several of. */
const GROUPS = { prompts: "prompt", resources: "resource", templates: "template", tools: "tool" } as const;

/** By server id. */
export type PinTable = ReadonlyMap<string, ServerPins>;

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
    return stat === undefined ? undefined : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.mode} ${stat.uid}`;
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
  const target = await realTarget(file);
  const text = renderPins(pins);
  const isMasked = hasMasks(text);
  // Who reads where a secret was, and what stands around it, knows more than others should.
  if (isMasked) await chmod(target, 0o600).catch(() => {});
  await writeAtomic(target, text, { mode: isMasked ? 0o600 : 0o644 });
}

/** Whether a definition, or the text of a lock file, contains a masked secret. */
export function hasMasks(value: unknown): boolean {
  return (typeof value === "string" ? value : JSON.stringify(value)).includes(MASK);
}

function parsePins(file: string, text: string): PinTable {
  const value = parseJson(file, text);
  if (!isJsonObject(value) || !isJsonObject(value["servers"])) throw damaged(file, "has no servers");
  const version = value["version"];
  if (typeof version === "number" && version > VERSION) {
    throw unusable(file, `has version ${version}, and this Toolcrib knows ${VERSION}`, "Use a newer Toolcrib.");
  }
  if (version !== 1 && version !== VERSION) throw damaged(file, "has no known version");
  return new Map(
    Object.entries(value["servers"]).map(([id, server]) => {
      if (!isJsonObject(server)) throw damaged(file, `says nothing usable of the server ${id}`);
      return [id, parseServer(file, id, server)];
    }),
  );
}

function parseServer(file: string, id: string, server: JsonObject): ServerPins {
  const pins: Pin[] = [];
  for (const [group, kind] of Object.entries(GROUPS)) {
    const entries = server[group] ?? (kind === "tool" ? undefined : {});
    if (!isJsonObject(entries)) throw damaged(file, `says nothing usable of the ${group} of the server ${id}`);
    for (const [name, pin] of Object.entries(entries)) pins.push(checkedPin(file, id, { kind, name }, pin));
  }
  if (server[INSTRUCTIONS] !== undefined) {
    pins.push(checkedPin(file, id, { kind: "instructions", name: INSTRUCTIONS }, server[INSTRUCTIONS]));
  }
  return new Map(pins.map((pin) => [pinKey(pin), pin]));
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
export function checkedPin(
  file: string,
  server: string,
  { kind, name }: { readonly kind: PinKind; readonly name: string },
  pin: unknown,
): Pin {
  const where = kind === "tool" ? `${server} ${name}` : `${server} ${kind} ${name}`;
  const definition = isJsonObject(pin) ? pin["definition"] : undefined;
  if (!isJsonObject(pin) || !isDefinition(kind, definition)) throw damaged(file, `holds no definition for ${where}`);
  const { fingerprint: print, pinnedAt } = pin;
  if (typeof print !== "string" || print !== fingerprint(definition)) {
    throw damaged(file, `holds a definition for ${where} that does not have the fingerprint beside it`);
  }
  return { kind, name, fingerprint: print, definition, pinnedAt: typeof pinnedAt === "string" ? pinnedAt : "" };
}

function isDefinition(kind: PinKind, value: unknown): value is JsonObject {
  if (!isJsonObject(value)) return false;
  switch (kind) {
    case "tool":
      return typeof value["name"] === "string" && isJsonObject(value["inputSchema"]);
    case "prompt":
      return typeof value["name"] === "string";
    case "resource":
      return typeof value["uri"] === "string";
    case "template":
      return typeof value["uriTemplate"] === "string";
    case "instructions":
      return value["text"] === undefined || typeof value["text"] === "string";
  }
}

export function renderPins(pins: PinTable): string {
  const servers = sortedObject(pins, renderServer);
  // People read it in editors and diffs: what a server hides in a text has to show there too.
  return `${terminalJson({ version: VERSION, servers }, 2)}\n`;
}

function renderServer(pins: ServerPins): JsonObject {
  const instructions = pins.get(pinKey({ kind: "instructions", name: INSTRUCTIONS }));
  const server: JsonObject = instructions === undefined ? {} : { [INSTRUCTIONS]: renderPin(instructions) };
  for (const [group, kind] of Object.entries(GROUPS)) {
    const ofKind = [...pins.values()].filter((pin) => pin.kind === kind);
    // Tools are always there: other programs look for them.
    if (ofKind.length === 0 && kind !== "tool") continue;
    server[group] = sortedObject(new Map(ofKind.map((pin) => [pin.name, pin])), renderPin);
  }
  return server;
}

function renderPin({ definition, fingerprint: print, pinnedAt }: Pin): JsonObject {
  return { definition: sorted(definition), fingerprint: print, pinnedAt };
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
