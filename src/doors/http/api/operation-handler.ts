/** Handlers of operations: their input, context and output, input checks, and paging. */
import type { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { type CheckedInput, type OperationName, OPERATIONS, type OutputOf } from "../../../contract/operations.ts";
import type { EventName, FieldsOf } from "../../../contract/websocket.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { ClientInfo } from "../../../model/client-info.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { Progress } from "../../../model/protocol.ts";
import type { Session } from "../../../sessions/session.ts";
import type { OpenedSessions, SessionExtras } from "./caller-sessions.ts";
import type { ResourceSubscriptions } from "./resource-subscriptions.ts";
import type { Questions, Requester } from "./questions.ts";

/** Takes secrets out of every string of a value. */
export interface Masker {
  maskAll<Value>(value: Value): Value;
}

export interface ApiParts extends SessionExtras {
  readonly hub: Hub;
  readonly redactor: Masker;
  readonly version: string;
  /** Config keys that the command line sets, by the option that does: `{"http.port": "--port"}`, with their values. */
  readonly commandLine?: Readonly<Record<string, { readonly option: string; readonly value: unknown }>>;
  /** For `TOOLCRIB_LIMITS_*` and the folders of agent clients; `process.env` if absent. */
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
}

export interface HandlerParts extends ApiParts {
  readonly opened: OpenedSessions;
  readonly questions: Questions;
  readonly followed: ResourceSubscriptions;
}

export interface OperationContext extends Requester {
  /** The caller's session, which sees what the caller sees. */
  readonly session: Session;
  /** The program that asks, in its own words; that of the session if absent. */
  readonly clientInfo?: ClientInfo | undefined;
  /** Aborts when the client no longer waits. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Sends an event to this client alone; absent if the door cannot. */
  readonly tell?: <Name extends EventName>(type: Name, fields: DeepReadonly<FieldsOf<Name>>) => void;
  /** Address of the hub as the caller reaches it, without a slash at the end. */
  readonly baseUrl: string;
  /** The same, if browsers may bring a code there: `redirectBaseOf`. */
  readonly redirectBase: string | undefined;
}

export type Handler<Name extends OperationName> = (
  input: CheckedInput<Name>,
  context: OperationContext,
  parts: HandlerParts,
) => Promise<DeepReadonly<OutputOf<Name>>> | DeepReadonly<OutputOf<Name>>;

export type Handlers<Names extends OperationName = OperationName> = { readonly [Name in Names]: Handler<Name> };

/** Types the handlers of some operations by the names of the operations. */
export function handlersOf<Names extends OperationName>(handlers: Handlers<Names>): Handlers<Names> {
  return handlers;
}

/** A value of the contract that is only read. */
export type DeepReadonly<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

const MAX_SHOWN_ISSUES = 5;

interface Issue {
  readonly path: string;
  readonly message: string;
}

/** Checks an input; the error names each wrong field. */
export function checkInput<Name extends OperationName>(name: Name, input: unknown): CheckedInput<Name> {
  // The schema of that name was what checked it.
  return checkFields(OPERATIONS[name].input, input) as CheckedInput<Name>;
}

export function checkFields<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const checked = schema.safeParse(input);
  if (checked.success) return checked.data;
  throw invalidInput(checked.error.issues.map((issue) => ({ path: issue.path.join("."), message: messageOf(issue) })));
}

export function invalidInput(issues: readonly Issue[]): ToolcribError {
  const shown = issues
    .slice(0, MAX_SHOWN_ISSUES)
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = issues.length > MAX_SHOWN_ISSUES ? `; and ${issues.length - MAX_SHOWN_ISSUES} more` : "";
  return new ToolcribError("invalid_arguments", `${shown.join("; ")}${more}.`, { details: { issues } });
}

/** Zod's messages begin with "Invalid input: "; a missing field is one of another type to it. */
function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `${issue.keys.map((key) => JSON.stringify(key)).join(", ")} is not known`;
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "is missing" : `must be ${withArticle(issue.expected)}`;
    case "invalid_union": {
      const wanted = issue.errors.map(([first]) => (first === undefined ? "" : messageOf(first)));
      if (wanted.includes("is missing")) return "is missing";
      const forms = wanted.flatMap((each) => /^must be (.*)$/s.exec(each)?.[1] ?? []);
      return forms.length === 0 ? "has a wrong value" : `must be ${[...new Set(forms)].join(" or ")}`;
    }
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    default:
      return issue.message.replace(/^Invalid input: /, "");
  }
}

function withArticle(type: string): string {
  if (type === "record") return "an object";
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** Whether one of the texts contains the wanted part, in whichever case; true if none is wanted. */
export function containsText(part: string | undefined, texts: readonly unknown[]): boolean {
  const wanted = part?.toLowerCase();
  return wanted === undefined || texts.some((text) => typeof text === "string" && text.toLowerCase().includes(wanted));
}

interface PageInput {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface Paged<Entry> {
  readonly entries: readonly Entry[];
  readonly total: number;
  /** Spread into the answer: absent on the last page. */
  readonly next: { readonly nextCursor?: string };
}

/** Pages of a list that is in memory. The cursor names the last entry seen, so that changes before it shift nothing. */
export function pageOf<Entry>(
  all: readonly Entry[],
  { limit, cursor }: PageInput,
  keyOf: (entry: Entry) => string,
): Paged<Entry> {
  const start = cursor === undefined ? 0 : pageStart(all, readCursor(cursor), keyOf);
  const entries = all.slice(start, start + limit);
  const end = start + entries.length;
  const last = entries.at(-1);
  const isLast = end >= all.length || last === undefined;
  const nextCursor = isLast ? undefined : Buffer.from(JSON.stringify([end, keyOf(last)])).toString("base64url");
  return { entries, total: all.length, next: isLast ? {} : { nextCursor } };
}

interface Position {
  readonly index: number;
  readonly key: string;
}

/** If the entry is gone, its position in the list is the best guess. */
function pageStart<Entry>(all: readonly Entry[], { index, key }: Position, keyOf: (entry: Entry) => string): number {
  const expected = all[index - 1];
  if (expected !== undefined && keyOf(expected) === key) return index;
  const found = all.findIndex((entry) => keyOf(entry) === key);
  return found === -1 ? Math.max(0, index - 1) : found + 1;
}

function readCursor(cursor: string): Position {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(value)) {
      const [index, key]: unknown[] = value;
      if (typeof index === "number" && Number.isSafeInteger(index) && index > 0 && typeof key === "string") {
        return { index, key };
      }
    }
  } catch {
    // Said below.
  }
  throw invalidInput([{ path: "cursor", message: "is not a cursor of this list" }]);
}
