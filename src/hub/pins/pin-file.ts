/** `toolcrib.lock`: the pinned definitions as a file that people read, compare and share. */
import { createHash, hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { terminalJson } from "../../base/visible-text.ts";
import { withLock } from "../../files/lock-file.ts";
import { assertSafeFile } from "../../files/path-safety.ts";
import { realTarget, writeAtomic } from "../../files/write-atomic.ts";
import { fingerprint } from "../../base/fingerprint.ts";
import { INSTRUCTIONS, type Pin, pinKey, type PinKind, type ServerPins } from "./pin-comparison.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { MASK } from "../../secrets/mask.ts";

/** 1 knew tools only. Its servers have no pin of their instructions, by which the rest counts as not seen yet. */
const VERSION = 2;
const LOCK_FILE_NAME = "toolcrib.lock";

/** The keys of a server in the file, for what it may have several of. */
const GROUPS = { prompts: "prompt", resources: "resource", templates: "template", tools: "tool" } as const;

/** By server id. */
export type PinTable = ReadonlyMap<string, ServerPins>;

/** Beside a config file of Toolcrib's own; in the home for another program's file, whose folder is not ours. */
export function pinFileFor(configFile: string | null, home: string): string {
  if (configFile === null) return join(home, LOCK_FILE_NAME);
  if (/^toolcrib.*\.jsonc?$/.test(basename(configFile))) return join(dirname(configFile), LOCK_FILE_NAME);
  const id = createHash("sha256").update(configFile).digest("hex").slice(0, 12);
  return join(home, "locks", `${id}.lock`);
}

/** Whether the lock file is beside its config, for people to share. */
export function isSharedPinFile(file: string): boolean {
  return basename(file) === LOCK_FILE_NAME;
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

/** The pins of a lock file, and a digest of its text. */
export interface PinDocument {
  readonly pins: PinTable;
  readonly digest: string;
}

/**
 * undefined where there is no file. Throws `invalid_config` for one that cannot be used.
 * @param known Returned as it is if the file has its text, so that it need not be read as pins again.
 */
export function readPinFile(file: string, known?: PinDocument): PinDocument | undefined {
  let text: string;
  assertSafeFile(file);
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw unusableFile(file, `cannot be read (${code})`, "Make it readable.");
  }
  const digest = hash("sha256", text);
  return digest === known?.digest ? known : { pins: parsePins(file, text), digest };
}

/** Whether a lock file with them would have the same text. A fingerprint stands for its definition. */
export function isSameTable(a: PinTable, b: PinTable): boolean {
  if (a === b) return true;
  return a.size === b.size && [...a].every(([server, pins]) => isSameServer(pins, b.get(server)));
}

function isSameServer(a: ServerPins, b: ServerPins | undefined): boolean {
  if (a.size !== b?.size) return false;
  for (const [key, pin] of a) {
    const other = b.get(key);
    if (pin.fingerprint !== other?.fingerprint || pin.pinnedAt !== other.pinnedAt) return false;
  }
  return true;
}

/**
 * Reads, changes and writes under a lock, so that no process undoes what another wrote meanwhile. `change` gets
 * undefined where there is no file.
 */
async function updatePinFile(file: string, change: (pins: PinTable | undefined) => PinTable): Promise<PinTable> {
  const target = await realTarget(file);
  await mkdir(dirname(target), { recursive: true });
  return withLock(target, async () => {
    const before = readPinFile(file);
    const after = change(before?.pins);
    if (before === undefined ? after.size > 0 : !isSameTable(after, before.pins)) await writePinFile(target, after);
    return after;
  });
}

export async function writePinFile(file: string, pins: PinTable): Promise<PinDocument> {
  assertSafeFile(file);
  const text = renderPins(pins);
  const target = await realTarget(file);
  const isMasked = hasMasks(text);
  // The text around a masked secret says more than others should know.
  if (isMasked) await chmod(target, 0o600).catch(() => {});
  await writeAtomic(target, text, { mode: isMasked ? 0o600 : 0o644 });
  return { pins, digest: hash("sha256", text) };
}

/** Whether a definition, or the text of a lock file, contains a masked secret. */
export function hasMasks(value: unknown): boolean {
  return (typeof value === "string" ? value : JSON.stringify(value)).includes(MASK);
}

function parsePins(file: string, text: string): PinTable {
  const value = parseJson(file, text);
  if (!isJsonObject(value) || !isJsonObject(value["servers"])) throw damagedFile(file, "has no servers");
  const version = value["version"];
  if (typeof version === "number" && version > VERSION) {
    throw unusableFile(file, `has version ${version}, and this Toolcrib knows ${VERSION}`, "Use a newer Toolcrib.");
  }
  if (version !== 1 && version !== VERSION) throw damagedFile(file, "has no known version");
  return new Map(
    Object.entries(value["servers"]).map(([id, server]) => {
      if (!isJsonObject(server)) throw damagedFile(file, `says nothing usable of the server ${id}`);
      return [id, parseServer(file, id, server)];
    }),
  );
}

function parseServer(file: string, id: string, server: JsonObject): ServerPins {
  const pins: Pin[] = [];
  for (const [group, kind] of Object.entries(GROUPS)) {
    const entries = server[group] ?? (kind === "tool" ? undefined : {});
    if (!isJsonObject(entries)) throw damagedFile(file, `says nothing usable of the ${group} of the server ${id}`);
    for (const [name, pin] of Object.entries(entries)) pins.push(parsePin(file, id, { kind, name }, pin));
  }
  if (server[INSTRUCTIONS] !== undefined) {
    pins.push(parsePin(file, id, { kind: "instructions", name: INSTRUCTIONS }, server[INSTRUCTIONS]));
  }
  return new Map(pins.map((pin) => [pinKey(pin), pin]));
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A merge of two branches that went wrong is the likely cause.
    throw damagedFile(
      file,
      /^(<<<<<<<|>>>>>>>)/m.test(text) ? "has conflict markers of an unfinished merge" : "is not valid JSON",
    );
  }
}

/** The definition is what counts. A fingerprint that is not its own means that it was edited by hand or by someone. */
export function parsePin(
  file: string,
  server: string,
  { kind, name }: { readonly kind: PinKind; readonly name: string },
  pin: unknown,
): Pin {
  const where = kind === "tool" ? `${server} ${name}` : `${server} ${kind} ${name}`;
  const definition = isJsonObject(pin) ? pin["definition"] : undefined;
  if (!isJsonObject(pin) || !isDefinition(kind, definition)) throw damagedFile(file, `has no definition for ${where}`);
  const { fingerprint: print, pinnedAt } = pin;
  if (typeof print !== "string" || print !== fingerprint(definition)) {
    throw damagedFile(file, `has a definition for ${where} that does not match its fingerprint`);
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

function renderPins(pins: PinTable): string {
  const servers = sortKeys(Object.fromEntries([...pins].map(([id, ofServer]) => [id, renderServer(ofServer)])));
  // People read it in editors and diffs: what a server hides in a text has to show there too.
  return `${terminalJson({ version: VERSION, servers }, 2)}\n`;
}

function renderServer(pins: ServerPins): JsonObject {
  const byKind = Map.groupBy(pins.values(), ({ kind }) => kind);
  const [instructions] = byKind.get("instructions") ?? [];
  const server: JsonObject = instructions === undefined ? {} : { [INSTRUCTIONS]: renderPin(instructions) };
  for (const [group, kind] of Object.entries(GROUPS)) {
    const ofKind = byKind.get(kind);
    // Tools are always there: other programs look for them.
    if (ofKind === undefined && kind !== "tool") continue;
    // fromEntries makes own properties of names such as `__proto__` too.
    server[group] = Object.fromEntries((ofKind ?? []).map((pin) => [pin.name, renderPin(pin)]));
  }
  return server;
}

function renderPin({ definition, fingerprint: print, pinnedAt }: Pin): JsonObject {
  return { definition, fingerprint: print, pinnedAt };
}

/** The same value with sorted keys, so that a different order upstream is not a change. */
function sortKeys(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sortKeys);
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).toSorted()) {
    const member = sortKeys((value as JsonObject)[key]);
    if (key === "__proto__") Object.defineProperty(sorted, key, { value: member, enumerable: true });
    else sorted[key] = member;
  }
  return sorted;
}

function damagedFile(file: string, what: string): ToolcribError {
  return unusableFile(
    file,
    what,
    "Bring back an earlier version of it, or remove it: what is known is written again, and `toolcrib pins reset` forgets that.",
  );
}

function unusableFile(file: string, what: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `The pins in ${file} cannot be used: it ${what}.`, {
    hint,
    details: { file },
  });
}

export interface ServerPin {
  readonly server: string;
  readonly pin: Pin;
  /** The fingerprint of the pin in whose place it comes; without one it comes only where there is none. */
  readonly replaces?: string;
}

/** A pin that is there already stays unless `replace` is set. */
export function withPins(table: PinTable, pins: readonly ServerPin[], options: { replace?: boolean } = {}): PinTable {
  if (pins.length === 0) return table;
  const result = new Map([...table].map(([id, known]) => [id, new Map(known)]));
  for (const { server, pin, replaces } of pins) {
    let known = result.get(server);
    if (known === undefined) result.set(server, (known = new Map()));
    const key = pinKey(pin);
    const before = known.get(key);
    if (options.replace === true || before === undefined || before.fingerprint === replaces) known.set(key, pin);
  }
  return result;
}

/** A server without pins is not in the table. */
export function withoutPins(table: PinTable, gone: (pin: ServerPin) => boolean): PinTable {
  return withPins(
    new Map(),
    allPins(table).filter((pin) => !gone(pin)),
  );
}

export function allPins(table: PinTable): ServerPin[] {
  return [...table].flatMap(([server, pins]) => [...pins.values()].map((pin) => ({ server, pin })));
}

export function isSamePin(a: Pick<Pin, "fingerprint" | "definition" | "pinnedAt"> | undefined, b: Pin): boolean {
  if (a === undefined || a.fingerprint !== b.fingerprint || a.pinnedAt !== b.pinnedAt) return false;
  return isDeepStrictEqual(a.definition, b.definition);
}

export interface ReadPins {
  /** undefined where there is nothing at all, as opposed to a file without pins. */
  readonly pins: PinTable | undefined;
  /** The pins before the file was edited. */
  readonly before?: PinTable;
  /** The file was gone, and what is known is written again. */
  readonly isRestored: boolean;
}

export interface UpdatedPins extends ReadPins {
  readonly pins: PinTable;
  /** The servers whose pins could not be written, while those of the others were. */
  readonly failed?: { readonly isOf: (server: string) => boolean; readonly error: ToolcribError };
}

export interface PinStorage {
  /** The lock file, which may not exist. */
  readonly file: string;
  /** The lock file that speaks for a server, where there are several. */
  fileOf?(server: string): string;
  /** Why the pins of a server cannot be used, while those of others can. */
  problemOf?(server: string): ToolcribError | undefined;
  /** Says what else it is made of, where that is more than the file; the same text for the same. */
  readonly part?: string;
  /** The consequence if something could not be written, for a message. */
  readonly unwritten: string;
  /** Whether there may be something else than what was last read or written here. */
  hasChanged(): boolean;
  /** Rejects with `invalid_config` for what cannot be used. It is never overwritten then. */
  read(): Promise<ReadPins>;
  /**
   * Reads, changes and writes, so that no process undoes what another wrote meanwhile.
   * @param isNeeded Rejects, and changes nothing, if the pins of one of these servers cannot be written. Others are `failed`.
   */
  update(
    change: (pins: PinTable | undefined) => PinTable,
    isNeeded?: (server: string) => boolean,
  ): Promise<UpdatedPins>;
  /** Until `close`, `hasChanged` notices other processes too; `onChange` is called if they are reported. */
  follow(onChange: () => void): void;
  close(): void;
}

/** Pins of a hub without a store. */
export function pinsInFile(file: string): PinStorage {
  let stamp: string | undefined;
  return {
    file,
    unwritten: "Until they can, a change is noticed only while this process runs.",
    hasChanged: () => pinFileStamp(file) !== stamp,
    async read() {
      stamp = pinFileStamp(file);
      return { pins: readPinFile(file)?.pins, isRestored: false };
    },
    async update(change) {
      let isRestored = false;
      let wasThere = false;
      const pins = await updatePinFile(file, (found) => {
        // Removed since it was last looked at; what is written now brings it back.
        isRestored = found === undefined && stamp !== undefined;
        wasThere = found !== undefined;
        return change(found);
      });
      // Written a moment ago: if it is gone already, the next look must find that out. Without pins none is made.
      stamp = pinFileStamp(file) ?? (wasThere || pins.size > 0 ? "removed" : undefined);
      return { pins, isRestored };
    },
    follow() {},
    close() {},
  };
}
