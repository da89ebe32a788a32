/** A source's result on its way out: public URIs, the guard, hooks, taint, large results, and the Outcome; errors and progress too. */
import { randomUUID } from "node:crypto";
import type { CatalogReader } from "../../catalog/catalog.ts";
import { inspectResult, redact, type UntrustedOrigin } from "./inspect-result.ts";
import { resultBytes } from "../../base/json-bytes.ts";
import { rewriteTexts, textsOf } from "./result-texts.ts";
import { scanTexts, type TextFindings } from "../../guard/scan-texts.ts";
import {
  neutralize,
  readableText,
  untrustedMarkOf,
  unwrapUntrusted,
  withoutEmptyMark,
  withUntrustedMark,
  wrapUntrusted,
} from "../../guard/wrap-untrusted.ts";
import { isLocalSource } from "../../model/capability.ts";
import { describeBlock, formatBytes, truncateMiddle } from "../../model/content.ts";
import {
  asSentence,
  CHECK_BEFORE_RETRY,
  type ErrorObject,
  type Outcome,
  OUTCOME_UNKNOWN,
  ToolcribError,
} from "../../model/errors.ts";
import { type Finding, isAtLeast, type Place } from "../../model/finding.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isOwnMetaKey, ownMeta, withoutOwnMeta } from "../../model/own-meta.ts";
import type { CallToolResult, ContentBlock, Progress, Result } from "../../model/protocol.ts";
import { isTaskReport, URL_ELICITATION_REQUIRED } from "../../model/protocol.ts";
import type { ClientSide, Source, Use } from "../../model/source.ts";
import { RESULTS_SOURCE } from "../../sessions/kept-results.ts";
import type { Session } from "../../sessions/session.ts";
import { whatIsRead } from "../../sessions/taint.ts";
import type { CallContext, CallPath } from "./call-context.ts";
import type { Target } from "./locate.ts";
import type { HookCall } from "./hooks.ts";

/**
 * The result as it may be handed out. Throws `too_large` or `blocked` for one that may not. With `keepLarge` a tool's large
 * result becomes a short one and is kept; resources and prompts have no form for that and stay `too_large`.
 */
export async function inspectCallResult(
  call: CallContext,
  target: Target,
  /** As hooks see it; undefined where there are none. */
  seen: HookCall | undefined,
  raw: Result,
): Promise<Result> {
  const { path, callId } = call;
  const isQuestion = raw["resultType"] === "input_required";
  // Only a call that had to be asked about has an approval, and its rounds need one together.
  if (call.decision?.verdict !== "allow") {
    if (isQuestion) path.approvals.restore(callId, { hasRun: true });
    else path.approvals.spend(callId);
  }

  const limit = path.limitValues.resultBytes;
  const mayKeep = call.keepLarge === true && call.use.kind === "tool" && !isQuestion;
  const resultBytes = isKeptResult(target) ? Infinity : mayKeep ? Math.max(limit, MAX_KEPT_BYTES) : limit;
  const untrusted = untrustedResult(call, target, raw);
  // Hooks and in-process tools can change an object that they have seen, and what is kept is not sent.
  const encodes = seen === undefined && target.source.kind === "server" && !call.session.inProcess;
  const inspection = await inspectResult(raw, { resultBytes, encodeUpTo: encodes ? limit : 0, untrusted });
  report(call, inspection.findings, inspection.found);
  if (inspection.verdict === "rejected") {
    const findings = inspection.findings.map(({ code, severity }) => ({ code, severity }));
    const details = findings.length === 0 ? undefined : { findings };
    throw new ToolcribError(inspection.code, inspection.message, { hint: inspection.hint, details });
  }
  const bytes = (call.resultBytes = inspection.bytes);
  taintSession(call, target);
  const inspected = inspection.verdict === "changed" ? inspection.result : raw;
  const passed = isKeptResult(target) && call.audience !== "agent" ? withoutEmptyMark(inspected) : inspected;
  if (inspection.verdict === "changed") call.forgedMarkers += inspection.forgedMarkers;
  // Hooks look at the whole, so that nothing is kept that they withhold.
  const whole = seen === undefined ? passed : withNotes(await path.hooks.after(seen, passed, call.notes), call.notes);
  const result = leavesProcess(call, target) ? withoutDetails(whole) : whole;
  if (!mayKeep || bytes <= limit) return result;
  const { name, definition } = target.capability;
  const promisesStructure = "outputSchema" in definition && definition["outputSchema"] !== undefined;
  const { session } = call;
  return keepLargeResult({ session, callId, name, result, origin: untrusted, bytes, limit, promisesStructure });
}

/**
 * `details` of an in-process tool are for the program that it is part of. A server's result may have a field of that name
 * too, which goes on as it came.
 */
function leavesProcess({ session }: CallContext, { source }: Target): boolean {
  return source.kind === "local" && isLocalSource(source.id) && !session.inProcess;
}

function withoutDetails(result: Result): Result {
  if (result["details"] === undefined) return result;
  const { details: _details, ...rest } = result;
  return rest;
}

function isKeptResult({ source }: Target): boolean {
  return source.id === RESULTS_SOURCE;
}

/** A kept result has been inspected, but perhaps for a program; an agent gets it with boundaries. */
function untrustedResult(call: CallContext, target: Target, raw: Result): UntrustedOrigin | undefined {
  const { source: server, name: tool } = target.capability.origin;
  if (!isKeptResult(target)) return untrustedOrigin(call, { server, tool }, placeOf(call, raw));
  const mark = untrustedMarkOf(raw);
  if (mark === undefined || mark.wrapped || call.audience !== "agent") return undefined;
  return untrustedSource(call, mark, "result");
}

function withNotes(result: Result, notes: Readonly<Record<string, unknown>>): Result {
  if (Object.keys(notes).length === 0) return result;
  const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
  return { ...result, _meta: { ...meta, ...ownMeta("notes", notes) } };
}

/** Throws `tool_error` for what a tool returned that is not a result. */
export function outcomeOf({ callId, use, target }: CallContext, result: Result): Outcome {
  if (use.kind !== "tool" || isAboutTask(use, result)) return { ok: true, callId, result };
  const answer = withContent(result, target);
  if (answer.isError !== true) return { ok: true, callId, result: answer };
  return { ok: false, callId, error: { code: "tool_error", message: readableText(answer) }, result: answer };
}

/** Such an answer has the state of a task, and no content. */
function isAboutTask(use: Use, result: Result): boolean {
  if (use.kind !== "tool") return false;
  if (use.task !== undefined) return use.task.method !== "tasks/result";
  return result["resultType"] === "task" || (isJsonObject(result["task"]) && result["content"] === undefined);
}

/** A tool's result must have content; that of an old or careless server without any gets an empty list. */
function withContent(result: Result, target: Target | undefined): CallToolResult {
  const { content } = result;
  if (content === undefined || content === null) return { ...result, content: [] };
  const fault = contentFault(content);
  if (fault === undefined) return result as CallToolResult;
  const { where, value, required } = fault;
  const found = kindOf(value);
  const { source: server, name: tool } = target?.capability.origin ?? { source: "", name: "" };
  throw new ToolcribError(
    "tool_error",
    `The tool ${tool} of ${server} returned something that is not a result: ${where} is ${found}, ` +
      `where MCP requires ${required}.`,
    { hint: "This is a fault of the server; the tool may have run.", details: { server, tool, where, found } },
  );
}

/**
 * Where the content is not what every reader expects. Blocks may lack a `type`; readers treat it as an unknown type. A text that
 * is not one would be shown as nothing, and providers refuse it.
 */
function contentFault(content: unknown): { where: string; value: unknown; required: string } | undefined {
  if (!Array.isArray(content)) return { where: "content", value: content, required: "a list of content blocks" };
  const blocks: readonly unknown[] = content;
  for (const [index, block] of blocks.entries()) {
    const where = `content[${index}]`;
    if (!isJsonObject(block)) return { where, value: block, required: "a content block" };
    if (block["type"] === "text" && typeof block["text"] !== "string")
      return { where: `${where}.text`, value: block["text"], required: "text" };
  }
  return undefined;
}

/** Never the value itself, which is the server's. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  const kinds: Readonly<Record<string, string>> = { string: "text", object: "an object", undefined: "nothing" };
  return kinds[typeof value] ?? `a ${typeof value}`;
}

/**
 * A server names its resources by its own URIs. Where the public one differs, because other servers claim it, results get
 * the public one, which the client can read. The same result if nothing is mapped; links to unlisted resources are
 * remembered for the session.
 */
export function withPublicUris(catalog: CatalogReader, session: Session, source: Source, result: Result): Result {
  // Sources in this process have no resources; what they pass on from servers has its public URIs already.
  if (source.kind !== "server") return result;
  const publicUri = (uri: string): string => {
    const given = catalog.publicUri(source.id, uri);
    if (given === uri && catalog.findResource(uri) === undefined) session.links.add(uri, source.id);
    return given;
  };
  let changed = result;
  for (const [key, mapItem] of URI_FIELDS) {
    const items = result[key];
    if (!Array.isArray(items)) continue;
    const mapped = mapItems(items, mapItem, publicUri);
    if (mapped !== items) changed = { ...changed, [key]: mapped };
  }
  return changed;
}

type PublicUri = (uri: string) => string;
type MapItem = (item: JsonObject, publicUri: PublicUri) => JsonObject;

/** Where results name resources: blocks of content, what a resource holds, messages of a prompt. */
const URI_FIELDS: readonly (readonly [key: string, mapItem: MapItem])[] = [
  ["content", mapBlock],
  ["contents", mapUri],
  ["messages", mapMessage],
];

function mapMessage(item: JsonObject, publicUri: PublicUri): JsonObject {
  const { content } = item;
  if (Array.isArray(content)) {
    const mapped = mapItems(content, mapBlock, publicUri);
    return mapped === content ? item : { ...item, content: mapped };
  }
  if (!isJsonObject(content)) return item;
  const mapped = mapBlock(content, publicUri);
  return mapped === content ? item : { ...item, content: mapped };
}

function mapBlock(item: JsonObject, publicUri: PublicUri): JsonObject {
  if (item["type"] === "resource_link") return mapUri(item, publicUri);
  const { resource } = item;
  if (item["type"] !== "resource" || !isJsonObject(resource)) return item;
  const mapped = mapUri(resource, publicUri);
  return mapped === resource ? item : { ...item, resource: mapped };
}

function mapUri(item: JsonObject, publicUri: PublicUri): JsonObject {
  const { uri } = item;
  if (typeof uri !== "string") return item;
  const mapped = publicUri(uri);
  return mapped === uri ? item : { ...item, uri: mapped };
}

/** The same list if no item is another. */
function mapItems(items: unknown[], map: MapItem, publicUri: PublicUri): unknown[] {
  let changed: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    if (!isJsonObject(item)) continue;
    const mapped = map(item, publicUri);
    if (mapped !== item) (changed ??= [...items])[index] = mapped;
  }
  return changed ?? items;
}

/** An error is read at once and goes to a model as it is: a document has no place in it. */
const MAX_ERROR_BYTES = 16 * 1024;
const MAX_DETAILS_BYTES = 64 * 1024;

/**
 * An error that a server worded is as untrusted as a result: it is scanned, and wrapped for agents, like one. Secrets are
 * masked in every error, whoever worded it.
 */
export async function failedOutcome(call: CallContext, error: ToolcribError): Promise<Outcome> {
  return withLoginLink(call, await describeFailed(call, error));
}

/**
 * A missing login comes with the address where it can be made: as a question of MCP if the client can ask its user to open it, and
 * in the error otherwise.
 */
function withLoginLink({ path, session, client, name, input }: CallContext, outcome: Outcome): Outcome {
  if (outcome.ok || outcome.error.details?.["loginNeeded"] !== true) return outcome;
  const { server } = outcome.error.details;
  const url = typeof server === "string" ? path.loginLink(session, server) : undefined;
  if (typeof server !== "string" || url === undefined) return outcome;
  const { message, hint, details } = outcome.error;
  const error = {
    ...outcome.error,
    hint: `Log in at ${url} and call again. Or: ${hint}`,
    details: { ...details, loginUrl: url },
  };
  const { elicitation } = client.capabilities;
  // Who has agreed already and not logged in yet is not asked again at once.
  const wasAsked = Object.values(input?.responses ?? {}).some((answer) => isJsonObject(answer));
  if (!isJsonObject(elicitation) || elicitation["url"] === undefined || wasAsked) return { ...outcome, error };
  const ask = `Log in to ${path.displayName(server)} in the browser, so that ${name} can be used.`;
  const elicitationId = randomUUID();
  path.loginAsked(elicitationId, session, server);
  const elicitations = [{ mode: "url", elicitationId, url, message: ask }];
  const rpc = {
    code: URL_ELICITATION_REQUIRED,
    message: `${message} Log in at ${url} and call again.`,
    data: { elicitations },
  };
  return { ...outcome, error: { ...error, details: { ...error.details, rpc } } };
}

async function describeFailed(call: CallContext, error: ToolcribError): Promise<Outcome> {
  const { path, callId, session, target } = call;
  path.approvals.spend(callId);
  const masked = withUnknownOutcome(call, path.mask(error.toObject()));
  const server = target?.capability.origin.source ?? serverNamedBy(masked);
  if (server === undefined) return { ok: false, callId, error: masked };
  const ownName = session.mounted?.nameOf(server);
  if (masked.code === "server_unavailable" && !session.owner && !isLocalSource(server) && ownName === undefined)
    return { ok: false, callId, error: withoutServerDetails(server, masked) };
  const plain = ownName === undefined ? masked : inSessionTerms(masked, server, ownName);

  const tool = target?.capability.origin.name ?? call.name;
  const untrusted = isServerWorded(plain) ? untrustedOrigin(call, { server, tool }, "error") : undefined;
  if (untrusted === undefined) return { ok: false, callId, error: plain };
  if (target !== undefined) taintSession(call, target);
  const bounded = boundedError(plain);
  const said = { content: [{ type: "text", text: bounded.message }], details: bounded.details };
  const inspection = await inspectResult(said, { resultBytes: Infinity, untrusted });
  report(call, inspection.findings, inspection.found);
  if (inspection.verdict === "rejected") {
    const { code, message, hint } = inspection;
    return { ok: false, callId, error: { code, message, hint } };
  }
  return {
    ok: false,
    callId,
    error: inspection.verdict === "changed" ? reworded(bounded, inspection.result) : bounded,
  };
}

/** A server that never connected has no capability to ask. */
function serverNamedBy({ code, details }: ErrorObject): string | undefined {
  const server = details?.["server"];
  return code === "server_unavailable" && typeof server === "string" ? server : undefined;
}

/** The server's own answer, or why it is not connected: that quotes its stderr, or its answer to the handshake. */
function isServerWorded({ code, details }: ErrorObject): boolean {
  return code === "server_unavailable" || details?.["rpc"] !== undefined;
}

/** The id of a server that the session brought says nothing to those who hear of it; the ids of no two servers are alike. */
function inSessionTerms(error: ErrorObject, id: string, name: string): ErrorObject {
  const { message, hint, details } = error;
  return {
    ...error,
    message: message.replaceAll(id, name),
    ...(hint === undefined ? {} : { hint: hint.replaceAll(id, name) }),
    ...(details?.["server"] === id ? { details: { ...details, server: name } } : {}),
  };
}

/** Paths, addresses and stderr of the machine that the hub runs on are not for others than its user. */
function withoutServerDetails(server: string, { code, details }: ErrorObject): ErrorObject {
  const isUnknown = details?.["outcome"] === "unknown";
  const sent = details?.["sent"];
  return {
    code,
    message: `The server "${server}" is not available.${isUnknown ? ` ${OUTCOME_UNKNOWN}` : ""}`,
    hint: isUnknown ? CHECK_BEFORE_RETRY : "Try again later, or ask whoever runs it.",
    details: {
      server,
      ...(typeof sent === "boolean" ? { sent } : {}),
      ...(isUnknown ? { outcome: "unknown" } : {}),
    },
  };
}

/**
 * A tool that may have run while its answer was lost: with its server's process, its connection or its node. Whoever is told
 * only that the server is away would call again. A tool without effects may be called again.
 */
function withUnknownOutcome({ use, begun, target }: CallContext, error: ErrorObject): ErrorObject {
  const { code, message, hint, details } = error;
  if (code !== "server_unavailable" || use.kind !== "tool" || begun === undefined) return error;
  if (details?.["sent"] === false || details?.["rpc"] !== undefined) return error;
  const capability = target?.capability;
  const hints = capability?.kind === "tool" ? capability.definition.annotations : undefined;
  if (hints?.readOnlyHint === true || hints?.idempotentHint === true) return error;
  const advice =
    hint === undefined || hint === CHECK_BEFORE_RETRY ? CHECK_BEFORE_RETRY : `${CHECK_BEFORE_RETRY} ${hint}`;
  return {
    code,
    message: message.includes(OUTCOME_UNKNOWN) ? message : `${asSentence(message)} ${OUTCOME_UNKNOWN}`,
    hint: advice,
    details: { ...details, outcome: "unknown" },
  };
}

function boundedError(error: ErrorObject): ErrorObject {
  const message = truncateMiddle(error.message, MAX_ERROR_BYTES, "\n[... cut here ...]\n");
  const { details } = error;
  if (details === undefined || resultBytes(details, MAX_DETAILS_BYTES) <= MAX_DETAILS_BYTES)
    return { ...error, message };
  const rpc = details["rpc"];
  const code = isJsonObject(rpc) ? rpc["code"] : undefined;
  return { ...error, message, details: typeof code === "number" ? { rpc: { code, message } } : {} };
}

function reworded(error: ErrorObject, { content, details }: { readonly [key: string]: unknown }): ErrorObject {
  const [block]: unknown[] = Array.isArray(content) ? content : [];
  const text = isJsonObject(block) ? block["text"] : undefined;
  return {
    ...error,
    message: typeof text === "string" ? text : error.message,
    ...(isJsonObject(details) ? { details } : {}),
  };
}

/** Of the words of a progress report, for an agent: a line, not a text. */
const MAX_PROGRESS_LENGTH = 300;

/** The progress report as this audience may see it. Only its numbers are left where the guard withholds its words. */
export function guardedProgress(call: CallContext, given: Progress): Progress | Promise<Progress> {
  const { path, audience, target } = call;
  const masked = path.mask(given);
  const server = target?.capability.origin.source ?? "";
  if (path.isTrusted(server)) return masked;
  if (audience !== "agent") return readProgress(call, masked);
  const { message } = masked;
  const line = typeof message === "string" ? { message: message.slice(0, MAX_PROGRESS_LENGTH).toWellFormed() } : {};
  const marked = (read: Progress): Progress => {
    const said = singleLine(read.message ?? "");
    // A short prefix marks it: a boundary around every step would be longer than what it is about.
    const prefix = path.guard.wrap === "none" ? "" : `[untrusted, from ${path.displayName(server)}] `;
    if (said === "") return numbersOf(read);
    return { ...numbersOf(read), message: prefix === "" ? said : prefix + neutralize(said) };
  };
  const reading = readProgress(call, { ...numbersOf(masked), ...line });
  return reading instanceof Promise ? reading.then(marked) : marked(reading);
}

function numbersOf({ progress, total }: Progress): Progress {
  return { progress, ...(typeof total === "number" ? { total } : {}) };
}

function readProgress(call: CallContext, given: Progress): Progress | Promise<Progress> {
  const { path } = call;
  const { onSuspicious, sensitivity } = path.guard;
  const { texts } = textsOf(given);
  if (texts.size === 0) return given;
  taintByWords(call);
  if (onSuspicious === "ignore") return given;
  const judged = (found: TextFindings): Progress => {
    const serious = seriousOf(found);
    // A server may report a thousand times; one finding says it.
    if (serious.length > 0 && call.findings.length === 0) report(call, serious, found);
    if (serious.length === 0 || onSuspicious === "warn") return given;
    if (onSuspicious === "block") return numbersOf(given);
    // The same report with other texts in it.
    return rewriteTexts(given, (text) => redact(text, found.get(text) ?? [])) as Progress;
  };
  const options = { place: "progress", sensitivity } as const;
  return path.detects("progress") ? path.scan(texts, options).then(judged) : judged(scanTexts(texts, options));
}

/** A server's log messages reach clients that show them to models, and other notifications may. */
export function guardedNotice(call: CallContext, method: string, params: JsonObject): JsonObject | Promise<JsonObject> {
  if (isTaskReport(method)) return params;
  taintByWords(call);
  const reading = guardedLog(call.path, call.target?.capability.origin.source ?? "", params);
  const passed = ({ message, findings, found }: GuardedLog<JsonObject>): JsonObject => {
    if (call.findings.length === 0) report(call, findings, found);
    return message;
  };
  return reading instanceof Promise ? reading.then(passed) : passed(reading);
}

interface GuardedLog<Message> {
  readonly message: Message;
  readonly findings: readonly Finding[];
  readonly found?: TextFindings;
}

/** The same for a message that belongs to no call. */
export function guardedLog<Message extends JsonObject>(
  path: Pick<CallPath, "guard" | "isTrusted" | "scan" | "detects">,
  server: string,
  message: Message,
): GuardedLog<Message> | Promise<GuardedLog<Message>> {
  const { onSuspicious, sensitivity } = path.guard;
  if (onSuspicious === "ignore" || path.isTrusted(server)) return { message, findings: [] };
  const judged = (found: TextFindings): GuardedLog<Message> => {
    const findings = seriousOf(found);
    if (findings.length === 0 || onSuspicious === "warn") return { message, findings, found };
    if (onSuspicious === "block") return { message: withheld(message, found), findings, found };
    // The same message with other texts in it.
    const redacted = rewriteTexts(message, (text) => redact(text, found.get(text) ?? [])) as Message;
    return { message: redacted, findings, found };
  };
  const { texts } = textsOf(message);
  const options = { place: "log", sensitivity } as const;
  return path.detects("log") ? path.scan(texts, options).then(judged) : judged(scanTexts(texts, options));
}

/** Level and logger are left if they are no part of what was found. */
function withheld<Message extends JsonObject>(message: Message, found: TextFindings): Message {
  const kept = ["level", "logger"].flatMap((key) => {
    const value = message[key];
    return typeof value === "string" && !found.has(value) ? [[key, value] as const] : [];
  });
  // A log message must have a level and data, and no other notification has to have anything.
  return {
    ...Object.fromEntries([["level", "info"], ...kept]),
    data: "[removed by the guard]",
  } as JsonObject as Message;
}

/** For the record of the call, and for the operator who asks to see the text. */
function report(call: CallContext, findings: readonly Finding[], found: TextFindings | undefined): void {
  if (findings.length === 0) return;
  call.findings = [...call.findings, ...findings];
  if (found !== undefined) call.path.passages.keep(call.callId, found, call.path.mask);
}

function seriousOf(found: TextFindings): Finding[] {
  return [...found.values()].flat().filter(({ severity }) => isAtLeast(severity, "medium"));
}

/**
 * A server's questions reach people and models while the call runs, so their words pass the guard too. One that is blocked
 * is refused, which the server hears.
 */
export function guardedClient(call: () => CallContext, client: ClientSide): ClientSide {
  return withQuestionsRead(client, async (place, params) => {
    const asking = call();
    const { question, serious, found } = await readQuestion(
      asking.path,
      asking.target?.capability.origin.source ?? "",
      place,
      params,
    );
    report(asking, serious, found);
    return question();
  });
}

/** The same for questions outside of any call, which have no record: the finding is a warning. */
export function guardedIdleClient(
  path: () => Pick<CallPath, "guard" | "isTrusted" | "scan">,
  server: string,
  client: ClientSide,
  onSuspicious: (place: Place, findings: readonly Finding[]) => void,
): ClientSide {
  return withQuestionsRead(client, async (place, params) => {
    const { question, serious } = await readQuestion(path(), server, place, params);
    if (serious.length > 0) onSuspicious(place, serious);
    return question();
  });
}

type QuestionPlace = "sampling" | "elicitation";

function withQuestionsRead(
  client: ClientSide,
  read: (place: QuestionPlace, params: JsonObject) => Promise<JsonObject>,
): ClientSide {
  const { sample, elicit } = client;
  if (sample === undefined && elicit === undefined) return client;
  return {
    ...client,
    sample: sample && (async (params, context) => sample(await read("sampling", params), context)),
    elicit: elicit && (async (params, context) => elicit(await read("elicitation", params), context)),
  };
}

interface ReadQuestion {
  readonly serious: readonly Finding[];
  readonly found?: TextFindings;
  /** The question as it may be asked. Throws for one that may not. */
  readonly question: () => JsonObject;
}

async function readQuestion(
  { guard: { onSuspicious, sensitivity }, isTrusted, scan }: Pick<CallPath, "guard" | "isTrusted" | "scan">,
  server: string,
  place: QuestionPlace,
  params: JsonObject,
): Promise<ReadQuestion> {
  if (onSuspicious === "ignore" || isTrusted(server)) return { serious: [], question: () => params };
  const found = await scan(textsOf(params).texts, { place, sensitivity });
  const serious = seriousOf(found);
  const question = (): JsonObject => {
    if (serious.length === 0 || onSuspicious === "warn") return params;
    if (onSuspicious === "redact") return rewriteTexts(params, (text) => redact(text, found.get(text) ?? []));
    const codes = [...new Set(serious.map(({ code }) => code))].join(", ");
    throw new ToolcribError("blocked", `The guard withheld a question of the server: ${codes}.`, {
      hint: "guard.onSuspicious is block. See the audit log, or set it to warn or redact to get such questions.",
    });
  };
  return { serious, found, question };
}

function singleLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
}

interface ToolOrigin {
  readonly server: string;
  readonly tool: string;
}

/** How the guard treats what comes from there; undefined for a trusted source. */
function untrustedOrigin(call: CallContext, { server, tool }: ToolOrigin, place: Place): UntrustedOrigin | undefined {
  const { isTrusted, displayName } = call.path;
  return isTrusted(server) ? undefined : untrustedSource(call, { server: displayName(server), tool }, place);
}

function placeOf({ use }: CallContext, result: Result): Place {
  if (result["resultType"] === "input_required") return "elicitation";
  if (result["isError"] === true) return "error";
  return use.kind === "resource" || use.kind === "prompt" ? use.kind : "result";
}

/** For what is known to be untrusted, of a server as people call it. */
function untrustedSource({ path, audience }: CallContext, origin: ToolOrigin, place: Place): UntrustedOrigin {
  const { server, tool } = origin;
  const { wrap, onSuspicious, sensitivity } = path.guard;
  const wraps = wrap === "all" || (wrap === "agents" && audience === "agent");
  const boundary = wraps ? randomUUID() : "";
  return {
    ...{ server, tool, boundary, wrap: wraps, marksAll: audience === "agent", onSuspicious, place, sensitivity },
    scan: path.scan,
  };
}

/** Words that come while a call runs have been read, whatever becomes of the call. */
function taintByWords(call: CallContext): void {
  if (call.target !== undefined) taintSession(call, call.target);
}

/** From now on the session holds content that anyone may have written. */
function taintSession({ path, callId, session, use }: CallContext, { capability }: Target): void {
  const { source } = capability.origin;
  const { openWorld, memory } = path.access.flowOf(capability);
  const at = path.clock.now();
  // What a tainted session wrote there comes from where that session had read, whoever reads it now; as a resource or a prompt, too.
  if (memory !== undefined || capability.kind !== "tool") {
    for (const origin of path.taints.kept(source)) session.markTainted({ ...origin, callId, at, via: source });
  }
  if (!openWorld || path.isTrusted(source)) return;
  const read = whatIsRead(use);
  const masked = read === undefined ? [] : [path.mask(read)];
  session.markTainted({ server: source, name: capability.name, read: masked, callId, at });
}

/** Before anything is sent: what a tainted session writes into memory may be there even if the call fails. */
export function taintMemory({ path, session }: CallContext, { capability }: Target): void {
  if (session.taint === null || path.access.flowOf(capability).memory !== "writes") return;
  const telling = path.taints.keep(capability.origin.source, session.taint.origins);
  if (telling !== undefined) session.tell(telling);
}

/** Results that are too large to return are kept for the session; larger ones than this are refused. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
/** Of the text, in the short result. */
const PREVIEW_BYTES = 2048;

interface LargeResult {
  readonly session: Session;
  readonly callId: string;
  /** The public name of the tool. */
  readonly name: string;
  /** As the guard and the hooks have left it. */
  readonly result: Result;
  /** Undefined for a trusted source. */
  readonly origin: UntrustedOrigin | undefined;
  readonly bytes: number;
  readonly limit: number;
  /** The tool promises structured content, which a short result cannot have. */
  readonly promisesStructure: boolean;
}

function keepLargeResult(large: LargeResult): CallToolResult {
  const { session, callId, name, result } = large;
  const { text, mimeType } = wholeText(result);
  const meta = ownEntries(result);
  const uri = session.results.keep(callId, text, { mimeType, meta: keptMeta(result, large.origin) });
  const size = Buffer.byteLength(text);
  const note =
    `The result of ${name} has ${formatBytes(large.bytes)}, more than the ${formatBytes(large.limit)} that are handed out. ` +
    `The whole of it is kept for this session as the resource ${uri} (${mimeType}, ${formatBytes(size)}). It begins:`;
  // Clients that check results refuse one without the promised structure, unless it is an error.
  const isError = result["isError"] === true || large.promisesStructure;
  return {
    ...(typeof result["resultType"] === "string" ? { resultType: result["resultType"] } : {}),
    content: [
      { type: "text", text: `${note}\n\n${preview(result, text)}` },
      { type: "resource_link", uri, name: `Result of ${name}`, mimeType, size },
    ],
    ...(isError ? { isError } : {}),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

/** Who reads it later has to know where it is from, also where nothing was found. */
function keptMeta(result: Result, origin: UntrustedOrigin | undefined): JsonObject | undefined {
  if (origin === undefined || untrustedMarkOf(result) !== undefined) return ownEntries(result);
  const { server, tool } = origin;
  return ownEntries(withUntrustedMark(result, { server, tool, wrapped: false, findings: [] }));
}

const TEXT_ONLY: ReadonlySet<string> = new Set(["content", "isError", "resultType", "_meta"]);

function wholeText(result: Result): { readonly text: string; readonly mimeType: string } {
  const blocks = blocksOf(result);
  const isText = blocks.length > 0 && blocks.every(({ type, text }) => type === "text" && typeof text === "string");
  if (isText && Object.keys(result).every((key) => TEXT_ONLY.has(key))) {
    return { text: blocks.map(({ text }) => text).join("\n\n"), mimeType: "text/plain" };
  }
  // The marks are given with each read.
  const { _meta: meta, ...rest } = result;
  const theirs = isJsonObject(meta) ? withoutOwnMeta(meta) : {};
  const whole = Object.keys(theirs).length === 0 ? rest : { ...rest, _meta: theirs };
  return { text: JSON.stringify(whole), mimeType: "application/json" };
}

/** About 2 KB of what a person or a model would read, inside the boundary where the texts are. */
function preview(result: Result, whole: string): string {
  let text = "";
  for (const block of blocksOf(result)) {
    const said = describeBlock(block);
    text += (text === "" ? "" : "\n\n") + (unwrapUntrusted(said)?.text ?? said);
    if (text.length > PREVIEW_BYTES) break;
  }
  const start = firstBytes(text === "" ? whole : text);
  const mark = untrustedMarkOf(result);
  if (mark?.boundary === undefined) return start;
  const { boundary: id, server, tool, findings } = mark;
  return wrapUntrusted(start, { id, server, tool, findings });
}

function firstBytes(text: string): string {
  const bytes = Buffer.from(text.slice(0, PREVIEW_BYTES));
  const cut = text.length > PREVIEW_BYTES || bytes.length > PREVIEW_BYTES ? "…" : "";
  // A character that was cut in two decodes to replacement marks.
  return bytes.toString("utf8", 0, PREVIEW_BYTES).replace(/\ufffd+$/, "") + cut;
}

function blocksOf({ content }: Result): ContentBlock[] {
  // Blocks may lack a `type`; readers treat it as an unknown type.
  return Array.isArray(content) ? (content.filter(isJsonObject) as ContentBlock[]) : [];
}

/** Our own entries of `_meta`: the mark, and what hooks noted. */
function ownEntries({ _meta: meta }: Result): JsonObject | undefined {
  const own = isJsonObject(meta) ? Object.entries(meta).filter(([key]) => isOwnMetaKey(key)) : [];
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
