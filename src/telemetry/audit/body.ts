/** Records as JSON text, with everything that comes from outside cut to a size and masked. */
import { hash } from "node:crypto";
import { canonicalJson } from "../../model/json.ts";
import type { CallContent, CallRecord, StartRecord } from "../call-record.ts";
import type { DecisionRecord, EventRecord } from "./record.ts";

const NAME_LENGTH = 1024;
const NOTES_LENGTH = 4096;
const ARGUMENTS_BYTES = 4096;
const RESULT_BYTES = 16 * 1024;
/** Longer arguments and results are not kept as text: a cut before masking could leave half a secret, and masking all of it costs. */
const MASKED_LENGTH = 1024 * 1024;
const FINDINGS = 50;
const TOO_LONG = "(too long to keep)";

export interface BodyOptions {
  /** Of the chain: the same arguments have one hash within it, and no table of hashes fits two chains. */
  readonly salt: string;
  /** Whether arguments and results of a source are kept as text; null for a call that reached none. */
  readonly keepsArguments: (source: string | null) => boolean;
  readonly keepsResults: (source: string | null) => boolean;
  /** Masks values under names of credentials in arguments and results, which are plain data. */
  readonly maskCredentials: <Value extends object>(value: Value) => Value;
  readonly redact: (text: string) => string;
  /** Name of the node that writes; absent where there is only one. */
  readonly node?: string | undefined;
}

/** What is kept of the arguments of a call: size and hash, and the text if the config wants it. */
interface KeptArguments {
  readonly argumentBytes?: number | null;
  readonly argumentsHash?: string | null;
  readonly arguments?: string;
}

/** What was made of a call when it began; most of it stands in its last record again. */
export interface BegunCall {
  readonly record: StartRecord;
  /** The members of `subjectOf` as JSON, without the braces. */
  readonly subject: string;
  readonly kept: KeptArguments;
}

export function begunCall(record: StartRecord, content: CallContent | undefined, options: BodyOptions): BegunCall {
  return { record, subject: subjectText(record, options), kept: keptArguments(record, content, options) };
}

export function startBody({ subject, kept }: BegunCall): string {
  return joined("start", subject, JSON.stringify(kept));
}

/** @param begun Of the same call, if it began: what went to the tool then, whatever became of the arguments meanwhile. */
export function callBody(
  record: CallRecord,
  content: CallContent | undefined,
  begun: BegunCall | undefined,
  options: BodyOptions,
): string {
  const subject =
    begun !== undefined && isSameSubject(begun.record, record) ? begun.subject : subjectText(record, options);
  const rest = JSON.stringify({
    outcome: record.outcome,
    durationMs: record.durationMs,
    waitedMs: record.waitedMs,
    isHeld: record.isHeld,
    ...(begun?.kept ?? keptArguments(record, content, options)),
    resultBytes: record.resultBytes,
    ...keptResult(record, content, options),
    findings: (record.findings ?? [])
      .slice(0, FINDINGS)
      .map(({ code, severity, place, score }) => ({ code, severity, place, score })),
    ...notesOf("notes", record.notes, options.redact),
  });
  return joined("call", subject, rest);
}

/** @param rest The JSON of an object, perhaps an empty one. */
function joined(type: "start" | "call", subject: string, rest: string): string {
  return `{"type":"${type}",${subject}${rest === "{}" ? "}" : `,${rest.slice(1)}`}`;
}

const WHO = ["time", "callId", "session", "role", "user", "client", "door"] as const;
const SUBJECT = [...WHO, "kind", "name", "origin", "decision", "rule"] as const;

function isSameSubject(a: StartRecord, b: StartRecord): boolean {
  return SUBJECT.every((key) => a[key] === b[key]);
}

function subjectText(record: StartRecord, { redact, node }: BodyOptions): string {
  return JSON.stringify({ ...subjectOf(record, redact), node }).slice(1, -1);
}

export function decisionBody(record: DecisionRecord, { redact, node }: BodyOptions): string {
  const { answer, answeredBy, answeredThrough } = record;
  const said = { answer, answeredBy: clip(answeredBy), answeredThrough };
  return JSON.stringify({ type: "decision", ...subjectOf(record, redact), ...said, node });
}

export function eventBody(record: EventRecord, now: string, { redact, node }: BodyOptions): string {
  const { time = now, name, origin, user, details, ...rest } = record;
  return JSON.stringify({
    type: "event",
    time,
    ...rest,
    name: name === undefined ? undefined : redact(clip(name)),
    origin: origin === undefined ? undefined : originOf(origin, redact),
    user: clip(user),
    ...notesOf("details", details ?? {}, redact),
    node,
  });
}

/** Who called what, and why that was allowed or not. */
function subjectOf(record: StartRecord | DecisionRecord, redact: (text: string) => string): object {
  return {
    time: record.time,
    callId: record.callId,
    session: record.session,
    role: clip(record.role ?? null),
    user: clip(record.user ?? null),
    client: record.client,
    door: record.door,
    kind: record.kind,
    name: redact(clip(record.name)),
    origin: originOf(record.origin, redact),
    decision: record.decision,
    rule: ruleOf(record.rule),
  };
}

function keptArguments({ origin }: StartRecord, content: CallContent | undefined, options: BodyOptions): KeptArguments {
  if (content === undefined) return {};
  let text: string;
  try {
    text = canonicalJson(content.arguments);
  } catch {
    // Nested beyond the stack, or no JSON: such a call has failed elsewhere, and its record still counts.
    return { argumentBytes: null, argumentsHash: null };
  }
  return {
    argumentBytes: Buffer.byteLength(text),
    argumentsHash: hash("sha256", `${options.salt}\n${text}`),
    ...(options.keepsArguments(origin?.source ?? null)
      ? { arguments: maskedText(content.arguments, text.length, ARGUMENTS_BYTES, options) }
      : {}),
  };
}

function keptResult(
  { origin, resultBytes }: CallRecord,
  content: CallContent | undefined,
  options: BodyOptions,
): { readonly result?: string } {
  if (content?.result === undefined || !options.keepsResults(origin?.source ?? null)) return {};
  return { result: maskedText(content.result, resultBytes, RESULT_BYTES, options) };
}

/** @param length About that of its JSON. */
function maskedText(value: unknown, length: number, bytes: number, { maskCredentials, redact }: BodyOptions): string {
  if (length > MASKED_LENGTH) return TOO_LONG;
  try {
    const masked = typeof value === "object" && value !== null ? maskCredentials(value) : value;
    return firstBytes(redact(JSON.stringify(masked) ?? ""), bytes);
  } catch {
    // Nested beyond the stack, or no JSON.
    return TOO_LONG;
  }
}

function notesOf(key: string, notes: Readonly<Record<string, unknown>>, redact: (text: string) => string): object {
  if (Object.keys(notes).length === 0) return {};
  try {
    const masked = JSON.stringify(notes, (_key, value: unknown) => (typeof value === "string" ? redact(value) : value));
    if (masked.length > NOTES_LENGTH) return { [key]: { cut: true, length: masked.length } };
    return { [key]: JSON.parse(masked) };
  } catch {
    return { [key]: { cut: true } };
  }
}

type Origin = CallRecord["origin"];

function originOf(origin: Origin, redact: (text: string) => string): Origin {
  return origin === null ? null : { source: clip(origin.source), name: redact(clip(origin.name)) };
}

function ruleOf(rule: CallRecord["rule"]): CallRecord["rule"] {
  return rule === null ? null : { ...rule, pattern: clip(rule.pattern), where: clip(rule.where) };
}

function clip<Text extends string | null | undefined>(text: Text): Text | string {
  return typeof text === "string" && text.length > NAME_LENGTH ? `${text.slice(0, NAME_LENGTH)}…` : text;
}

function firstBytes(text: string, most: number): string {
  // A character that does not fit as a whole is not read.
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(most));
  return read === text.length ? text : `${text.slice(0, read)}…`;
}
