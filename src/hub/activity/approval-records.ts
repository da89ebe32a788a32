/** Records of calls that needed approval. Those that wait in this hub are taken from the hub; the others are stored. */
import { createHmac, randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { endsWithin } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { LruMap } from "../../base/maps.ts";
import type { Approval } from "../../contract/activity-schemas.ts";
import type { DefinitionChange } from "../../contract/catalog-schemas.ts";
import type { AskOutcome, AskRequest } from "../../model/decision.ts";
import { canonicalJson, type JsonObject } from "../../model/json.ts";
import { riskyParts } from "../../policy/risky-arguments.ts";
import { maskCredentials } from "../../secrets/mask.ts";
import type { ApprovalStatus, Page, PageOptions, StoredApproval, StoredApprovals } from "../../store/store.ts";
import { type Timestamped, pageOf } from "./memory-records.ts";

/** Characters of JSON; larger requests are stored in their short form. */
const MAX_STORED_CHARS = 64 * 1024;

/** How long an answer waits until it is stored. */
const MAX_WRITE_WAIT_MS = 2000;

export interface ApprovalRecordsOptions {
  readonly stored: StoredApprovals;
  /** This hub. */
  readonly hub: string;
  readonly clock: Clock;
  readonly asked: () => readonly AskRequest[];
  /** Where a server is, if it is at an address. */
  readonly hostOf?: (source: string) => string | undefined;
  /** Whether a definition is not what was approved. */
  readonly isChanged?: (request: AskRequest) => boolean;
  /** How it differs. */
  readonly changeOf?: (request: AskRequest) => DefinitionChange | undefined;
  readonly mask: <Value>(value: Value) => Value;
  /** `audit.arguments`: without it, values of arguments are not stored. */
  readonly keepArguments: boolean;
  /** Resolves when other hubs on the store can know that this one is alive: they close what a dead one has stored. Never rejects. */
  readonly announced: () => Promise<void>;
  readonly onProblem: (error: unknown) => void;
}

interface AnswerInProgress {
  readonly by: string | null;
  /** Receives the promise of the write. */
  readonly written: (writing: Promise<void>) => void;
}

export class ApprovalRecords {
  readonly #options: ApprovalRecordsOptions;
  /** Of calls that wait in this hub. */
  readonly #askedAt = new Map<string, string>();
  readonly #seenAt = new LruMap<string, { readonly at: string }>(1000);
  readonly #answerers = new Map<string, AnswerInProgress>();
  /** For the write that is next. */
  readonly #waiting: StoredApproval[] = [];
  #writing: Promise<void> = Promise.resolve();
  readonly #groupKey = randomBytes(32);

  constructor(options: ApprovalRecordsOptions) {
    this.#options = options;
  }

  asked(request: AskRequest): void {
    const askedAt = this.#now();
    this.#askedAt.set(request.id, askedAt);
    void this.#put(this.#record(request, { askedAt }));
  }

  answered(request: AskRequest, answer: AskOutcome): void {
    const { id } = request;
    const now = this.#now();
    const answerer = this.#answerers.get(id);
    const askedAt = this.#askedAt.get(id) ?? now;
    this.#askedAt.delete(id);
    this.#answerers.delete(id);
    const status = answer === "timeout" || answer === "withdrawn" ? "expired" : "answered";
    const writing = this.#put(
      this.#record(request, { askedAt, status, answer, answeredAt: now, answeredBy: answerer?.by ?? null }),
    );
    answerer?.written(writing);
  }

  /** Runs `give`, which answers, and resolves when the answer is stored; false if no call was waiting. */
  async answering(id: string, by: string | null, give: () => boolean): Promise<boolean> {
    const written = new Promise<void>((resolve) => this.#answerers.set(id, { by, written: resolve }));
    let isGiven = false;
    try {
      isGiven = give();
    } finally {
      if (!isGiven) this.#answerers.delete(id);
    }
    // A slow store does not keep the person who answers waiting: it is written when it can be.
    if (isGiven) await endsWithin(written, { ms: MAX_WRITE_WAIT_MS, clock: this.#options.clock });
    return isGiven;
  }

  async list(options: PageOptions & { readonly status?: ApprovalStatus }): Promise<Page<Approval>> {
    // Only calls that can be answered here. Those of other hubs on the same store are in the list of all.
    if (options.status === "pending") return pageOf(this.#pending(), options);
    await this.#writing;
    const { entries, ...page } = await this.#options.stored.list(options);
    const live = new Map(this.#options.asked().map((request) => [request.id, request]));
    const shown = entries.map(async (stored): Promise<Approval[]> => {
      const request = live.get(stored.id);
      return request === undefined ? storedApproval(stored, { short: true }) : [this.#live(request, { short: true })];
    });
    return { entries: (await Promise.all(shown)).flat(), ...page };
  }

  /** With all its arguments, as far as they were kept. */
  async find(id: string): Promise<Approval | undefined> {
    const request = this.#options.asked().find((each) => each.id === id);
    if (request !== undefined) {
      const definition = this.#options.changeOf?.(request);
      return { ...this.#live(request, { short: false }), ...(definition === undefined ? {} : { definition }) };
    }
    await this.#writing;
    const stored = await this.#options.stored.get(id);
    return stored && (await storedApproval(stored, { short: false }))[0];
  }

  /** The other hub at which it waits. */
  async waitsAt(id: string): Promise<string | undefined> {
    const stored = await this.#options.stored.get(id);
    return stored?.status === "pending" && stored.hub !== this.#options.hub ? stored.hub : undefined;
  }

  /** Resolves when everything so far is written, or could not be. */
  flush(): Promise<void> {
    return this.#writing;
  }

  #pending(): Timestamped<Approval>[] {
    return this.#options.asked().map((request) => timestamped(this.#live(request, { short: true })));
  }

  #live(request: AskRequest, { short }: ListForm): Approval {
    const { mask } = this.#options;
    const shown = short ? summarizeApproval(request, mask) : mask(withMaskedArguments(request));
    const askedAt = this.#askedAt.get(request.id) ?? this.#firstSeen(request.id);
    const { id, held, callId, kind, name, origin, arguments: args, rule, rules, reason, expiresAt } = shown;
    const { lasting } = shown;
    const { roots, ...session } = shown.session;
    const looked = rules.flatMap((each) => each.arguments ?? []);
    const host = this.#options.hostOf?.(origin.source);
    return {
      ...{ id, status: "pending", held, callId, kind, name, origin, arguments: args, reason },
      session: { ...session, ...(roots === undefined ? {} : { roots: [...roots] }) },
      risks: riskyParts(args, { roots: roots ?? [], host, looked }),
      group: this.#group(request),
      ...(this.#options.isChanged?.(request) === true ? { changed: true } : {}),
      ...{ rule: { ...rule }, rules: rules.map((each) => ({ ...each })), askedAt, expiresAt },
      ...(lasting === undefined ? {} : { lasting: { ...lasting } }),
      ...("shortened" in shown ? { shortened: true } : {}),
      ...UNANSWERED,
    };
  }

  /** Of what really was asked: two calls may differ only in what is masked or cut off. Keyed, because little of it may be secret. */
  #group({ session, kind, name, origin, arguments: args, rules, held }: AskRequest): string {
    const { door, role, user, client } = session;
    const alike = [door, role, user, client?.name, kind, name, origin.source, args, rules, held];
    return createHmac("sha256", this.#groupKey).update(canonicalJson(alike)).digest("base64url");
  }

  /** For calls that wait at another node. */
  #firstSeen(id: string): string {
    const now = this.#now();
    const seen = this.#seenAt.get(id) ?? { at: now };
    this.#seenAt.set(id, seen);
    return seen.at;
  }

  #record(
    { lasting: _values, ...request }: AskRequest,
    state: Partial<StoredApproval> & Pick<StoredApproval, "askedAt">,
  ): StoredApproval {
    const { mask, hub, keepArguments } = this.#options;
    const isLarge = JSON.stringify([request.name, request.arguments]).length > MAX_STORED_CHARS;
    const named = keepArguments
      ? withMaskedArguments(request)
      : { ...request, arguments: omitValues(request.arguments) };
    const kept: JsonObject = { ...(isLarge ? summarizeApproval(named, mask) : mask(named)) };
    return { id: request.id, hub, status: "pending", request: kept, ...UNANSWERED, ...state };
  }

  /**
   * What is asked and answered in one turn of the event loop, or while others are written, is written together: every write is a
   * commit, for which the event loop waits. Never rejects.
   */
  #put(approval: StoredApproval): Promise<void> {
    const { stored, announced, onProblem } = this.#options;
    this.#waiting.push(approval);
    if (this.#waiting.length === 1) {
      this.#writing = this.#writing
        .then(() => Promise.all([announced(), nextTurn()]))
        .then(() => stored.put(...this.#waiting.splice(0)))
        .catch(onProblem);
    }
    return this.#writing;
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }
}

function withMaskedArguments(request: AskRequest): AskRequest {
  return { ...request, arguments: maskCredentials(request.arguments) };
}

interface ListForm {
  readonly short: boolean;
}

const UNANSWERED = { answer: null, answeredAt: null, answeredBy: null };

function timestamped(approval: Approval): Timestamped<Approval> {
  return { entry: approval, id: approval.id, at: approval.askedAt };
}

/** Empty if it does not fit the contract: another version of Toolcrib may have written it. */
async function storedApproval(
  { request, hub: _hub, ...state }: StoredApproval,
  { short }: ListForm,
): Promise<Approval[]> {
  // Loaded here: agents need none of it.
  const { ApprovalSchema } = await import("../../contract/activity-schemas.ts");
  const approval = ApprovalSchema.safeParse({ ...request, ...state });
  if (!approval.success) return [];
  if (!short) return [approval.data];
  const shown = summarizeApproval(approval.data, (value) => value);
  return [{ ...approval.data, ...shown }];
}

/** In characters; longer texts are truncated. */
const MAX_VALUE_LENGTH = 200;
const MAX_KEY_LENGTH = 100;
const MAX_TEXT_LENGTH = 500;
/** Bytes of JSON for the arguments of one call. */
const MAX_ARGUMENTS_BYTES = 8 * 1024;
/** Masking takes time: of arguments that are larger only the short values are shown at all. */
const MAX_MASKED_CHARS = 256 * 1024;

/** The parts of a request that can be long. */
type Summarizable = Pick<AskRequest, "arguments" | "name" | "reason">;

type ApprovalSummary<Request extends Summarizable = AskRequest> = Omit<Request, keyof Summarizable> &
  Summarizable & {
    /** Something is left out; the whole call can be read by its id. */
    readonly shortened?: true;
  };

/**
 * The short form of a waiting call for lists: enough to tell it from others, whatever its size.
 * @param mask Removes secrets. It gets whole values, because it would not recognize half a secret.
 */
export function summarizeApproval<Request extends Summarizable>(
  request: Request,
  mask: <Value>(value: Value) => Value,
): ApprovalSummary<Request> {
  const { arguments: args, name, reason, ...rest } = request;
  const shown = summarizeArguments(args, mask);
  // Of a resource the name is a URI, which may be as long as arguments are.
  const [wholeName, wholeReason] = [mask(name), mask(reason)];
  const isShortened = shown.isShortened || Math.max(wholeName.length, wholeReason.length) > MAX_TEXT_LENGTH;
  return {
    ...mask(rest),
    name: truncate(wholeName, MAX_TEXT_LENGTH),
    reason: truncate(wholeReason, MAX_TEXT_LENGTH),
    arguments: shown.arguments,
    ...(isShortened ? { shortened: true } : {}),
  };
}

function summarizeArguments(
  args: Readonly<JsonObject>,
  mask: <Value>(value: Value) => Value,
): { readonly arguments: JsonObject; readonly isShortened: boolean } {
  const isHuge = JSON.stringify(args).length > MAX_MASKED_CHARS;
  // A map, because a key may be `__proto__`.
  const shown = new Map<string, unknown>();
  const entries = Object.entries(args);
  let isShortened = false;
  let bytes = 0;
  for (const [index, [key, value]] of entries.entries()) {
    const shownKey = unusedKey(shown, truncate(mask(key), MAX_KEY_LENGTH));
    const readable = isHuge && isLong(value) ? value : maskCredentials({ [key]: value })[key];
    const shownValue = isHuge ? valueOrSize(readable, mask) : truncateValue(mask(readable));
    bytes += Buffer.byteLength(JSON.stringify([shownKey, shownValue]));
    if (bytes > MAX_ARGUMENTS_BYTES) {
      shown.set(unusedKey(shown, "…"), `${entries.length - index} more keys`);
      isShortened = true;
      break;
    }
    isShortened ||= shownKey.length > MAX_KEY_LENGTH || isLong(value);
    shown.set(shownKey, shownValue);
  }
  return { arguments: Object.fromEntries(shown), isShortened };
}

function isLong(value: unknown): boolean {
  return JSON.stringify(value).length > MAX_VALUE_LENGTH;
}

function truncateValue(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text.length <= MAX_VALUE_LENGTH) return value;
  return truncate(typeof value === "string" ? value : text, MAX_VALUE_LENGTH / 2);
}

function valueOrSize(value: unknown, mask: <Value>(value: Value) => Value): unknown {
  const { length } = JSON.stringify(value);
  return length <= MAX_VALUE_LENGTH ? mask(value) : `… ${length} characters of JSON`;
}

function truncate(text: string, longest: number): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest).toWellFormed()}… and ${text.length - longest} more characters`;
}

/** Two long keys with the same beginning stay two keys. */
function unusedKey(shown: ReadonlyMap<string, unknown>, key: string): string {
  let unused = key;
  for (let number = 2; shown.has(unused); number++) unused = `${key} (${number})`;
  return unused;
}

/** Replaces a value that is not stored. */
const OMITTED_VALUE = "(not kept)";

function omitValues(args: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.keys(args).map((key) => [key, OMITTED_VALUE]));
}
