/** Content that anyone may have written: where a session has it from, and which sessions share it. */
import { isJsonObject } from "../model/json.ts";
import type { Use } from "../model/source.ts";

/** A server whose content a session has read. */
export interface TaintOrigin {
  /** Its id. */
  readonly server: string;
  /** The public name of the tool or prompt that brought it in first, or the URI of the resource. */
  readonly name: string;
  /** The latest things that were read, such as addresses without their queries; the newest first. */
  readonly read: readonly string[];
  readonly callId: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Where it was written down in between: the id of a memory-like server. */
  readonly via?: string;
}

/** The first origin, and all of them. */
export interface Taint extends TaintOrigin {
  readonly origins: readonly TaintOrigin[];
}

/** Of the things that were read from one server. */
const MAX_READ = 3;
const MAX_ORIGINS = 50;

/** Who has read it, and through which door they said so. */
export interface ClearedBy {
  readonly user?: string | null;
  readonly door?: string;
}

export interface Clearance extends ClearedBy {
  /** The session in which it was said. */
  readonly session?: string;
  readonly origins: readonly TaintOrigin[];
}

/** Reports a change to the store and to other hubs. Results wait for it. */
export type TaintListener = (scope: TaintScope, cleared?: Clearance) => Promise<void>;

/** The origins that sessions of one conversation share. */
export class TaintScope {
  /** The same at every hub and after a restart; undefined for a session that stands alone. */
  readonly key: string | undefined;
  readonly #listener: TaintListener | undefined;
  readonly #origins = new Map<string, TaintOrigin>();
  #clearedAt = 0;
  #taint: Taint | null = null;
  /** Set while it is read from the store: decisions wait for it. */
  loading: Promise<void> | undefined;
  /** Whether other sessions have it too, or may get it. */
  isShared = false;

  constructor(key?: string, listener?: TaintListener) {
    this.key = key;
    this.#listener = listener;
  }

  get taint(): Taint | null {
    return this.#taint;
  }

  /** Milliseconds since 1970: a person knows everything that was read before. */
  get clearedAt(): number {
    return this.#clearedAt;
  }

  /** Undefined if nothing has to be reported: only a new server is a change, of which there are few. */
  add(origin: TaintOrigin): Promise<void> | undefined {
    const known = this.#origins.get(origin.server);
    if (known?.read[0] === origin.read[0] && known !== undefined) return undefined;
    this.#put(origin, known);
    return known === undefined ? this.#listener?.(this) : undefined;
  }

  /** Takes over what is known elsewhere. */
  merge(origins: readonly TaintOrigin[]): void {
    for (const origin of origins) {
      if (origin.at >= this.#clearedAt) this.#put(origin, this.#origins.get(origin.server));
    }
  }

  /** A person has looked at what was read until now. */
  clear(at: number, by: Omit<Clearance, "origins">): Promise<void> | undefined {
    const origins = this.#taint?.origins ?? [];
    this.clearUntil(at);
    return this.#listener?.(this, { ...by, origins });
  }

  clearUntil(at: number): void {
    if (at <= this.#clearedAt) return;
    this.#clearedAt = at;
    for (const [server, origin] of this.#origins) if (origin.at <= at) this.#origins.delete(server);
    this.#update();
  }

  #put(origin: TaintOrigin, known: TaintOrigin | undefined): void {
    if (known === undefined && this.#origins.size >= MAX_ORIGINS) return;
    const read = [...new Set([...origin.read, ...(known?.read ?? [])])].slice(0, MAX_READ);
    this.#origins.set(origin.server, { ...(known ?? origin), read });
    this.#update();
  }

  #update(): void {
    const origins = [...this.#origins.values()].toSorted((a, b) => a.at - b.at);
    const [first] = origins;
    this.#taint = first === undefined ? null : { ...first, origins };
  }
}

/** As the store and the cluster keep it. Undefined for anything else. */
export function parseOrigin(value: unknown): TaintOrigin | undefined {
  if (!isJsonObject(value)) return undefined;
  const { server, name, callId, at, via, read } = value;
  if (typeof server !== "string" || typeof name !== "string" || typeof callId !== "string" || typeof at !== "number")
    return undefined;
  const texts = Array.isArray(read) ? read.filter((text) => typeof text === "string") : [];
  return { server, name, callId, at, read: texts, ...(typeof via === "string" ? { via } : {}) };
}

/** Arguments that say what is read, the first that is there. */
const TELLING_ARGUMENTS = [
  "url",
  "uri",
  "urls",
  "href",
  "link",
  "path",
  "query",
  "q",
  "id",
  "messageId",
  "channel",
  "name",
];
const MAX_READ_LENGTH = 100;
/** Could be a token: long, and letters and digits mixed. */
const TOKEN = /(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{20,}/g;

/**
 * The thing that a call reads, in a few words for a person: an address without its query, a path, what is searched for. Nothing in it that
 * looks like a credential.
 */
export function whatIsRead(use: Use): string | undefined {
  if (use.kind === "resource") return readable(use.uri);
  if (use.kind !== "tool") return undefined;
  const { owner, repo } = use.arguments;
  if (typeof owner === "string" && typeof repo === "string") {
    const number = ["issue_number", "issueNumber", "pullNumber", "pull_number"]
      .map((key) => use.arguments[key])
      .find((value) => typeof value === "number");
    return readable(number === undefined ? `${owner}/${repo}` : `${owner}/${repo}#${number}`);
  }
  for (const key of TELLING_ARGUMENTS) {
    const [value]: unknown[] = [use.arguments[key]].flat();
    if (typeof value === "string" && value.trim() !== "") return readable(value);
  }
  return undefined;
}

const MAX_LOOKED_AT = 2000;

function readable(whole: string): string {
  const text = whole.slice(0, MAX_LOOKED_AT);
  const address = URL.parse(text.trim());
  const plain =
    address === null || address.host === "" ? text : `${address.protocol}//${address.host}${address.pathname}`;
  const line = plain
    .replaceAll(/[\s\p{Cc}\p{Cf}"`<>]+/gu, " ")
    .replaceAll(TOKEN, "…")
    .trim();
  return line.length > MAX_READ_LENGTH ? `${line.slice(0, MAX_READ_LENGTH).toWellFormed()}…` : line;
}

const MAX_DESCRIBED = 4;

/** The things that were read and where they came from, for a person who decides what may be done now. */
export function describeTaint({ origins }: Taint): string {
  const described = origins.slice(0, MAX_DESCRIBED).map(({ name, read, at, via }) => {
    const by = `${name}${via === undefined ? "" : `, kept in ${via}`}, ${new Date(at).toISOString().slice(0, 16)}Z`;
    return read.length === 0 ? by : `${read.join(", ")} (${by})`;
  });
  const more = origins.length - described.length;
  const list = `${described.join("; ")}${more > 0 ? `; and from ${more} more servers` : ""}`;
  return `this session has read what anyone may have written: ${list}`;
}

type Recorded<Entry extends TaintOrigin> = Omit<Entry, "at" | "read" | "origins"> & { read: string[]; at: string };

/** With a time that people read. */
export function originRecord({ at, read, ...rest }: TaintOrigin): Recorded<TaintOrigin> {
  return { ...rest, read: [...read], at: new Date(at).toISOString() };
}

export function taintRecord({ origins, ...first }: Taint): Recorded<Taint> & { origins: Recorded<TaintOrigin>[] } {
  return { ...originRecord(first), origins: origins.map(originRecord) };
}
