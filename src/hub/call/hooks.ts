/** Hooks let a program that embeds the hub narrow, refuse or annotate calls. They cannot widen anything. */
import type { CapabilityOrigin } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock, Result } from "../../model/protocol.ts";
import type { Use } from "../../model/source.ts";
import type { CallRecord } from "../../telemetry/call-record.ts";

/** A call as hooks see it: a frozen copy, names are public ones. */
export interface HookCall {
  readonly callId: string;
  readonly session: { readonly id: string; readonly door: string; readonly role?: string; readonly owner: boolean };
  readonly kind: Use["kind"];
  readonly name: string;
  readonly origin: CapabilityOrigin;
  readonly arguments: Readonly<JsonObject>;
}

/** Each field is optional; an empty verdict lets the call pass. */
export interface BeforeVerdict {
  /** Ends the call as `denied` with this text. */
  readonly refuse?: string;
  /** Top-level arguments that are left out. */
  readonly omitArguments?: readonly string[];
  /** Added to the call's record, and to the result's `_meta` under `dev.toolcrib/notes`. */
  readonly annotate?: Readonly<Record<string, unknown>>;
}

export interface AfterVerdict {
  /** Ends the call as `blocked` with this text; the result is withheld. */
  readonly refuse?: string;
  /** Blocks for which it returns false are left out. */
  readonly keepContent?: (block: ContentBlock, index: number) => boolean;
  readonly annotate?: Readonly<Record<string, unknown>>;
}

export interface PersistVerdict {
  /** Keeps the record from being written at all. */
  readonly refuse?: true;
  readonly annotate?: Readonly<Record<string, unknown>>;
}

/**
 * `before` and `after` that throw refuse: the guard fails closed. A `persist` that throws keeps nothing back.
 * `persist` is synchronous because records are written at once.
 */
export interface Hooks {
  before?(call: HookCall): BeforeVerdict | void | Promise<BeforeVerdict | void>;
  after?(call: HookCall, result: Readonly<Result>): AfterVerdict | void | Promise<AfterVerdict | void>;
  persist?(record: CallRecord): PersistVerdict | void;
}

export class HookChain {
  readonly #hooks = new Set<Hooks>();

  use(hooks: Hooks): () => void {
    this.#hooks.add(hooks);
    return () => {
      this.#hooks.delete(hooks);
    };
  }

  get empty(): boolean {
    return this.#hooks.size === 0;
  }

  /** The arguments that are left after every hook has narrowed them. */
  async before(call: HookCall, notes: Record<string, unknown>): Promise<JsonObject> {
    let current = call;
    for (const hooks of this.#hooks) {
      const verdict = await failClosed("before", "denied", () => hooks.before?.(frozenCopy(current)));
      if (verdict === undefined) continue;
      if (verdict.refuse !== undefined) throw hookRefusal("denied", verdict.refuse);
      Object.assign(notes, verdict.annotate);
      const omitted = verdict.omitArguments;
      if (omitted !== undefined) current = { ...current, arguments: withoutKeys(current.arguments, omitted) };
    }
    return current.arguments;
  }

  async after(call: HookCall, result: Result, notes: Record<string, unknown>): Promise<Result> {
    let current = result;
    for (const hooks of this.#hooks) {
      const verdict = await failClosed("after", "blocked", () => hooks.after?.(frozenCopy(call), frozenCopy(current)));
      if (verdict === undefined) continue;
      if (verdict.refuse !== undefined) throw hookRefusal("blocked", verdict.refuse);
      Object.assign(notes, verdict.annotate);
      const keep = verdict.keepContent;
      if (keep !== undefined && Array.isArray(current["content"])) {
        const content = current["content"].filter((block, index) => isJsonObject(block) && keep(asBlock(block), index));
        current = { ...current, content };
      }
    }
    return current;
  }

  /** The record to write, or undefined if a hook keeps it back. */
  persist(record: CallRecord): CallRecord | undefined {
    let current = record;
    for (const hooks of this.#hooks) {
      const verdict = persistVerdict(hooks, current);
      if (verdict === undefined) continue;
      if (verdict.refuse === true) return undefined;
      if (verdict.annotate !== undefined) current = { ...current, notes: { ...current.notes, ...verdict.annotate } };
    }
    return current;
  }
}

/** A record must not be lost to a bug in a hook, and the call has ended already. */
function persistVerdict(hooks: Hooks, record: CallRecord): PersistVerdict | undefined {
  try {
    return hooks.persist?.(frozenCopy(record)) ?? undefined;
  } catch (thrown) {
    return { annotate: { persistHookFailed: thrown instanceof Error ? thrown.message : String(thrown) } };
  }
}

async function failClosed<V>(
  name: string,
  code: "denied" | "blocked",
  run: () => V | void | Promise<V | void>,
): Promise<V | undefined> {
  try {
    return (await run()) ?? undefined;
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ToolcribError(code, `A ${name} hook failed, so the call is refused: ${why}`, { cause: thrown });
  }
}

function hookRefusal(code: "denied" | "blocked", reason: string): ToolcribError {
  return new ToolcribError(code, `Refused by a hook: ${reason}`, { details: { by: "hook" } });
}

function withoutKeys(object: Readonly<JsonObject>, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** A block without a string `type` is still the server's; hooks see it with an empty one. */
function asBlock(block: JsonObject): ContentBlock {
  return typeof block["type"] === "string" ? { ...block, type: block["type"] } : { ...block, type: "" };
}

/** A deep copy that cannot be changed, for code that may look but must not touch. Functions and the like are shared. */
export function frozenCopy<T>(value: T): T {
  if (Array.isArray(value)) {
    // A copy of an array has the array's own type.
    return Object.freeze(value.map((item) => frozenCopy<unknown>(item))) as T;
  }
  if (typeof value !== "object" || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  // As above: the same keys with copies of the same values.
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([key, item]) => [key, frozenCopy<unknown>(item)])),
  ) as T;
}
