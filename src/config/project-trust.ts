/**
 * Trust in project configs: by the path of the file and by what it says. What was trusted is kept in `trust.json` of
 * Toolcrib's home, as a digest of all that could run or reach something and a copy of the rules, so that a change that only
 * narrows the rules needs no new question.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, readFile, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { withLock } from "../files/lock-file.ts";
import { writeAtomic } from "../files/write-atomic.ts";
import { showHidden } from "../base/visible-text.ts";
import { GUARD_PROFILES, GuardProfileSchema } from "../model/config.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";
import type { TrustSubject } from "../model/loaded-config.ts";
import { ToolcribError } from "../model/errors.ts";
import { trustFile } from "./find-config.ts";

const RecordSchema = z.object({
  digest: z.string(),
  rules: z.record(z.string(), z.unknown()),
  trustedAt: z.string(),
  /** That other users can change the file or its folder was accepted. */
  shared: z.literal(true).optional(),
});

const TableSchema = z.object({ version: z.literal(1), configs: z.record(z.string(), RecordSchema) });

type TrustRecord = z.output<typeof RecordSchema>;

/** By the path of the project config. */
export type TrustTable = ReadonlyMap<string, TrustRecord>;

/** A file that cannot be used, or that other users can write, trusts nothing: `problem` says why. */
export async function readTrust(home: string): Promise<{ readonly table: TrustTable; readonly problem?: string }> {
  const file = trustFile(home);
  const table: TrustTable = new Map();
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    return errorCodeOf(error) === "ENOENT" ? { table } : { table, problem: `cannot be read (${errorCodeOf(error)})` };
  }
  const problem = await writableByOthers(file);
  if (problem !== undefined) return { table, problem };
  try {
    return { table: new Map(Object.entries(TableSchema.parse(JSON.parse(text)).configs)) };
  } catch {
    return { table, problem: "is damaged" };
  }
}

/** Writes one record down; undefined takes it out. */
export async function saveTrust(home: string, config: string, record: TrustRecord | undefined): Promise<void> {
  const file = trustFile(home);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await withLock(file, async () => {
    const { table, problem } = await readTrust(home);
    if (problem !== undefined) {
      throw new ToolcribError("invalid_config", `${file} ${problem}, so nothing is written to it.`, {
        hint: "Repair it, or remove it and trust project configs again.",
      });
    }
    const configs = new Map(table);
    if (record === undefined) configs.delete(config);
    else configs.set(config, record);
    const text = JSON.stringify({ version: 1, configs: Object.fromEntries(configs) }, null, 2);
    await writeAtomic(file, `${text}\n`, { mode: 0o600 });
  });
}

export function trustRecordOf({ digest, rules }: TrustSubject, shared: boolean): TrustRecord {
  return { digest, rules, trustedAt: new Date().toISOString(), ...(shared ? { shared: true as const } : {}) };
}

export function isTrusted(record: TrustRecord | undefined, subject: TrustSubject): boolean {
  return record !== undefined && record.digest === subject.digest && onlyNarrows(record.rules, subject.rules);
}

interface TrustedContent {
  /** Where the file really is: another target of a link is another config. */
  readonly real: string;
  readonly value: unknown;
  /** Other files that belong to it, by path; null for a missing one. */
  readonly others: ReadonlyMap<string, string | null>;
}

export function trustSubjectOf({ real, value, others }: TrustedContent): TrustSubject {
  const { rules, rest } = splitRules(value);
  const prints = [...others].map(([path, text]) => [path, text === null ? null : sha256(text)]);
  return { rules, digest: sha256(canonicalJson({ real, rest, others: Object.fromEntries(prints) })) };
}

const RULES = ["allow", "deny", "ask"];

/** The keys whose change may do no more than narrow, apart from all others. */
function splitRules(value: unknown): { rules: JsonObject; rest: unknown } {
  if (!isJsonObject(value)) return { rules: {}, rest: value };
  const { limits = {}, guard: written = {}, ...rest } = value;
  // Detectors run here or get what is read, so they are no rules.
  const { detectors, ...rules } = isJsonObject(written) ? written : {};
  const guard = isJsonObject(written) ? rules : written;
  const tools = splitLists(value["tools"]);
  const servers = isJsonObject(value["mcpServers"]) ? Object.entries(value["mcpServers"]) : [];
  const split = servers.map(([id, entry]) => {
    const lists = splitLists(isJsonObject(entry) ? entry["tools"] : undefined);
    return { id, lists, entry: isJsonObject(entry) ? { ...entry, tools: lists.rest } : entry };
  });
  return {
    rules: {
      ...{ tools: tools.lists, limits, guard },
      servers: Object.fromEntries(split.map(({ id, lists }) => [id, lists.lists])),
    },
    rest: {
      ...rest,
      // At their own place: a key `detectors` beside `guard` means nothing, and must not stand for them.
      ...(detectors === undefined ? {} : { guard: { detectors } }),
      tools: tools.rest,
      ...(isJsonObject(value["mcpServers"])
        ? { mcpServers: Object.fromEntries(split.map(({ id, entry }) => [id, entry])) }
        : {}),
    },
  };
}

function splitLists(tools: unknown): { lists: JsonObject; rest: unknown } {
  if (!isJsonObject(tools)) return { lists: {}, rest: tools ?? {} };
  const isRule = ([key]: [string, unknown]): boolean => RULES.includes(key);
  const entries = Object.entries(tools);
  return {
    lists: Object.fromEntries(entries.filter(isRule)),
    rest: Object.fromEntries(entries.filter((entry) => !isRule(entry))),
  };
}

/** Whether every rule of `after` lets through at most what `before` does. What is not understood counts as a no. */
export function onlyNarrows(before: JsonObject, after: JsonObject): boolean {
  const part = (rules: JsonObject, key: string): JsonObject => (isJsonObject(rules[key]) ? rules[key] : {});
  const servers = part(before, "servers");
  return (
    narrowsLists(part(before, "tools"), part(after, "tools")) &&
    narrowsLimits(part(before, "limits"), part(after, "limits")) &&
    narrowsGuard(writtenGuard(before["guard"]), writtenGuard(after["guard"])) &&
    Object.entries(part(after, "servers")).every(([id, lists]) =>
      narrowsLists(part(servers, id), isJsonObject(lists) ? lists : {}),
    )
  );
}

function narrowsLists(before: JsonObject, after: JsonObject): boolean {
  const [deny, ask] = [compareLists(before["deny"], after["deny"]), compareLists(before["ask"], after["ask"])];
  if (deny === undefined || ask === undefined || deny.lost || ask.lost || deny.freed || ask.freed) return false;
  if (after["allow"] === undefined) return before["allow"] === undefined;
  // What `ask` names need not be in `allow`: there a new entry, or one exception less, lets something in.
  if (ask.gained || ask.bound) return false;
  if (before["allow"] === undefined) return isTextList(after["allow"]);
  const allow = compareLists(before["allow"], after["allow"]);
  return allow !== undefined && !allow.gained && !allow.bound;
}

interface Compared {
  /** Plain entries that are new, and that are gone. */
  readonly gained: boolean;
  readonly lost: boolean;
  /** Exceptions (`!`) that are new, and that are gone. */
  readonly freed: boolean;
  readonly bound: boolean;
}

function compareLists(before: unknown = [], after: unknown = []): Compared | undefined {
  if (!isTextList(before) || !isTextList(after)) return undefined;
  const isException = (entry: string): boolean => entry.startsWith("!");
  const gained = after.filter((entry) => !before.includes(entry));
  const lost = before.filter((entry) => !after.includes(entry));
  return {
    gained: !gained.every(isException),
    lost: !lost.every(isException),
    freed: gained.some(isException),
    bound: lost.some(isException),
  };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

function narrowsLimits(before: JsonObject, after: JsonObject): boolean {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].every((key) => {
    const [was, is] = [before[key], after[key]];
    if (was === undefined) return typeof is === "number";
    return typeof was === "number" && typeof is === "number" && is <= was;
  });
}

/** From the most lenient to the strictest. */
export const GUARD_ORDER: Readonly<Record<string, readonly string[]>> = {
  wrap: ["none", "agents", "all"],
  onSuspicious: ["ignore", "warn", "redact", "block"],
  definitions: ["ignore", "warn", "quarantine"],
  pins: ["off", "warn", "ask", "block"],
  taint: ["off", "ask", "deny"],
};

/** The keys that a guard sets, by its profile or by itself. */
export function writtenGuard(guard: unknown): JsonObject {
  if (typeof guard === "string") return writtenGuard({ profile: guard });
  if (!isJsonObject(guard)) return {};
  const profile = GuardProfileSchema.safeParse(guard["profile"]).data;
  return profile === undefined ? guard : { ...GUARD_PROFILES[profile], ...guard };
}

function narrowsGuard(before: JsonObject, after: JsonObject): boolean {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].every((key) => {
    const [was, is] = [before[key], after[key]];
    // What it sets was compared with the other keys.
    if (key === "profile") return true;
    if (key === "classes") return narrowsClasses(was, is);
    const order = GUARD_ORDER[key];
    // A new key cannot loosen: the home's value counts where it is the stricter one.
    return order !== undefined && order.includes(String(is)) && order.indexOf(String(is)) >= order.indexOf(String(was));
  });
}

function narrowsClasses(before: unknown = {}, after: unknown = {}): boolean {
  if (!isJsonObject(before) || !isJsonObject(after)) return false;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].every((key) => {
    const compared = compareLists(before[key], after[key]);
    return compared !== undefined && !compared.lost && !compared.freed;
  });
}

/**
 * Why others than the user and root could have written a file or could put another in its place; undefined if they could not.
 * In a folder with the sticky bit, no user can replace the files of another. Of a folder it is asked who can put files into it.
 */
export async function findForeignWriter(file: string): Promise<string | undefined> {
  const real = await realpath(file).catch(() => file);
  const isFolder = await stat(real).then(
    (found) => found.isDirectory(),
    () => false,
  );
  for (const path of new Set(isFolder ? [file, real] : [file, real, dirname(file), dirname(real)])) {
    const problem = await writableByOthers(path);
    if (problem !== undefined) return `${showHidden(path)} ${problem}`;
  }
  return undefined;
}

/** Nothing on systems without such owners and modes. */
async function writableByOthers(path: string): Promise<string | undefined> {
  const user = process.geteuid?.();
  if (user === undefined) return undefined;
  const found = await lstat(path).catch(() => undefined);
  const target = found?.isSymbolicLink() === true ? await stat(path).catch(() => undefined) : undefined;
  for (const each of [found, target]) {
    if (each === undefined) continue;
    if (each.uid !== 0 && each.uid !== user) return `belongs to another user (uid ${each.uid})`;
    // The mode of a link says nothing.
    if (each.isSymbolicLink() || (each.isDirectory() && (each.mode & 0o1000) !== 0)) continue;
    if ((each.mode & 0o002) !== 0) return "can be written by every user";
    if ((each.mode & 0o020) !== 0 && each.gid !== process.getegid?.()) {
      return `can be written by the group ${each.gid}`;
    }
  }
  return undefined;
}

/** A config, or a file that belongs to one, is never larger. */
const MAX_BYTES = 4 * 1024 * 1024;

/** The text of a file that a stranger may have named: no device, no pipe that never ends. Errors have a `code`. */
export async function readPlainFile(path: string): Promise<string> {
  // `open` would wait for a writer of a pipe. Windows has no such flag.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const { size } = await handle.stat().then((found) => {
      if (!found.isFile()) throw Object.assign(new Error("not a file"), { code: "not a regular file" });
      return found;
    });
    if (size > MAX_BYTES) throw Object.assign(new Error("too large"), { code: `larger than ${MAX_BYTES} bytes` });
    // Files of the kernel say a size of 0 and go on without end.
    const bytes = Buffer.alloc(size + 1);
    let length = 0;
    for (let read = 1; read > 0 && length < bytes.length; length += read) {
      ({ bytesRead: read } = await handle.read(bytes, length, bytes.length - length));
    }
    if (length > size) throw Object.assign(new Error("changed"), { code: "larger than it says" });
    return bytes.toString("utf8", 0, length);
  } finally {
    await handle.close();
  }
}

/** The command that a person types; a path may contain characters that a shell or a terminal acts on. */
export function trustCommand(file: string, shared = false): string {
  const quoted = /^[\w@%+=:,./-]+$/.test(file) ? file : `'${file.replaceAll("'", String.raw`'\''`)}'`;
  return `toolcrib trust ${shared ? "--shared " : ""}${showHidden(quoted).replaceAll("\n", String.raw`\n`)}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function errorCodeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
}
