/** Calls that waited for a yes, and what became of them. What waits in this hub is what the hub says; the rest is stored. */
import { type Approval, ApprovalSchema } from "../../contract/activity.ts";
import type { AskOutcome, AskRequest } from "../../model/ask.ts";
import type { Clock } from "../../model/clock.ts";
import type { JsonObject } from "../../model/json.ts";
import { RecentMap } from "../../model/recent-map.ts";
import type { ApprovalStatus, Page, PageOptions, StoredApproval, StoredApprovals } from "../../store/store.ts";
import { withoutCredentials, withoutValues } from "./kept-arguments.ts";
import { listedApproval } from "./listed-approval.ts";
import { type Dated, pageOf } from "./pages.ts";

/** Characters of JSON; larger requests are stored as the list shows them. */
const MOST_STORED = 64 * 1024;

/** How long an answer waits until it is written down. */
const WRITTEN_MS = 2000;

interface ApprovalRecordsOptions {
  readonly stored: StoredApprovals;
  /** This hub. */
  readonly hub: string;
  readonly clock: Clock;
  readonly asked: () => readonly AskRequest[];
  readonly mask: <Value>(value: Value) => Value;
  /** `audit.arguments`: without it nothing that is stored says what the arguments were. */
  readonly keepArguments: boolean;
  readonly onProblem: (error: unknown) => void;
}

interface Answerer {
  readonly by: string | null;
  /** Tells when the answer is written down. */
  readonly written: (writing: Promise<void>) => void;
}

export class ApprovalRecords {
  readonly #options: ApprovalRecordsOptions;
  /** When those that wait here were asked for. */
  readonly #askedAt = new Map<string, string>();
  readonly #seenAt = new RecentMap<string, { readonly at: string }>(1000);
  readonly #answerers = new Map<string, Answerer>();
  #writing: Promise<void> = Promise.resolve();

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

  /** Runs `give`, which answers, and resolves when the answer is written down; false if nothing waited. */
  async answering(id: string, by: string | null, give: () => boolean): Promise<boolean> {
    const written = new Promise<void>((resolve) => this.#answerers.set(id, { by, written: resolve }));
    let isGiven = false;
    try {
      isGiven = give();
    } finally {
      if (!isGiven) this.#answerers.delete(id);
    }
    if (isGiven) await this.#atMost(written);
    return isGiven;
  }

  /** A store that does not answer keeps nobody waiting who has answered: it is written when it can be. */
  async #atMost(written: Promise<void>): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const stop = this.#options.clock.after(WRITTEN_MS, resolve);
    await Promise.race([written, late]);
    stop();
  }

  async list(options: PageOptions & { readonly status?: ApprovalStatus }): Promise<Page<Approval>> {
    // Only what can be answered here; what waits at another hub on the same store is in the list of all.
    if (options.status === "pending") return pageOf(this.#pending(), options);
    await this.#writing;
    const { entries, ...page } = await this.#options.stored.list(options);
    const live = new Map(this.#options.asked().map((request) => [request.id, request]));
    const shown = entries.flatMap((stored): Approval[] => {
      const request = live.get(stored.id);
      return request === undefined ? fromStored(stored, { short: true }) : [this.#live(request, { short: true })];
    });
    return { entries: shown, ...page };
  }

  /** With all its arguments, as far as they were kept. */
  async find(id: string): Promise<Approval | undefined> {
    const request = this.#options.asked().find((each) => each.id === id);
    if (request !== undefined) return this.#live(request, { short: false });
    await this.#writing;
    const stored = await this.#options.stored.get(id);
    return stored && fromStored(stored, { short: false })[0];
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

  #pending(): Dated<Approval>[] {
    return this.#options.asked().map((request) => dated(this.#live(request, { short: true })));
  }

  #live(request: AskRequest, { short }: Shown): Approval {
    const { mask } = this.#options;
    const shown = short ? listedApproval(request, mask) : mask(readable(request));
    const askedAt = this.#askedAt.get(request.id) ?? this.#firstSeen(request.id);
    const { id, held, callId, session, kind, name, origin, arguments: args, rule, rules, reason, expiresAt } = shown;
    return {
      ...{ id, status: "pending", held, callId, session, kind, name, origin, arguments: args, reason },
      ...{ rule: { ...rule }, rules: rules.map((each) => ({ ...each })), askedAt, expiresAt },
      ...("shortened" in shown ? { shortened: true } : {}),
      ...UNANSWERED,
    };
  }

  /** Of what waits at another node. */
  #firstSeen(id: string): string {
    const now = this.#now();
    const seen = this.#seenAt.get(id) ?? { at: now };
    this.#seenAt.set(id, seen);
    return seen.at;
  }

  #record(request: AskRequest, state: Partial<StoredApproval> & Pick<StoredApproval, "askedAt">): StoredApproval {
    const { mask, hub, keepArguments } = this.#options;
    const isLarge = JSON.stringify([request.name, request.arguments]).length > MOST_STORED;
    // While it waits, the hub itself knows the values.
    const named = keepArguments ? readable(request) : { ...request, arguments: withoutValues(request.arguments) };
    const kept: JsonObject = { ...(isLarge ? listedApproval(named, mask) : mask(named)) };
    return { id: request.id, hub, status: "pending", request: kept, ...UNANSWERED, ...state };
  }

  /** One after the other, so that an answer is never overtaken by its question. Never rejects. */
  #put(approval: StoredApproval): Promise<void> {
    const { stored, onProblem } = this.#options;
    return (this.#writing = this.#writing.then(() => stored.put(approval)).catch(onProblem));
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }
}

function readable(request: AskRequest): AskRequest {
  return { ...request, arguments: withoutCredentials(request.arguments) };
}

interface Shown {
  readonly short: boolean;
}

const UNANSWERED = { answer: null, answeredAt: null, answeredBy: null };

function dated(approval: Approval): Dated<Approval> {
  return { entry: approval, id: approval.id, at: approval.askedAt };
}

/** Another version of Toolcrib may have written it: what does not fit the contract is left out. */
function fromStored({ request, hub: _hub, ...state }: StoredApproval, { short }: Shown): Approval[] {
  const approval = ApprovalSchema.safeParse({ ...request, ...state });
  if (!approval.success) return [];
  if (!short) return [approval.data];
  const shown = listedApproval(approval.data, (value) => value);
  return [{ ...approval.data, ...shown }];
}
