/** Sessions and approvals of a hub, and its overview: `hub.activity`. */
import { randomUUID } from "node:crypto";
import type { Approval, Overview, SessionDetail, SessionInfo } from "../../contract/activity-schemas.ts";
import type { CheckedInput, OutputOf } from "../../contract/operations.ts";
import type { AskAnswer, AskRequest } from "../../model/decision.ts";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import { VERSION } from "../../model/version.ts";
import type { Session } from "../../sessions/session.ts";
import type { Store } from "../../store/store.ts";
import type { Answerer, Approvals } from "../call/approvals.ts";
import type { HubEvents } from "../hub-events.ts";
import { readHubRecords } from "./hub-records.ts";
import type { View } from "../view/view.ts";
import { ApprovalRecords, type ApprovalRecordsOptions } from "./approval-records.ts";
import { Housekeeping, HubHeartbeats } from "./housekeeping.ts";
import { memoryApprovals, memorySessions } from "./memory-records.ts";
import { sessionInfo, SessionRecords } from "./session-records.ts";

export interface ActivitySource {
  readonly session: Session;
  readonly skills: {
    list(): readonly unknown[];
    active(session: Session): Promise<readonly { readonly name: string }[]>;
  };
  readonly servers: { list(): readonly ServerInfo[] };
  readonly approvals: Pick<Approvals, "pending" | "answer">;
  readonly internals: {
    readonly store: Pick<Store, "kind"> | undefined;
    readonly cluster?: { readonly node: { readonly name: string } } | undefined;
    sessions(): readonly Session[];
  };
  view(session: Session): View;
  warnings(): readonly HubEvents["warning"][];
}

export interface ActivityOptions extends Pick<ApprovalRecordsOptions, "hostOf" | "isChanged" | "changeOf"> {
  readonly clock: Clock;
  readonly events: Emitter<HubEvents>;
  readonly mask: <Value>(value: Value) => Value;
  /** Whether stored approvals contain the values of arguments. */
  readonly keepArguments?: boolean;
  /** Where sessions and approvals are kept; in memory without one. */
  readonly store: Store | undefined;
  /** Its sessions, if something else is to write them. */
  readonly sessions?: Store["sessions"] | undefined;
  readonly home: string;
  /** Findings of the scan of definitions in the current lists. */
  readonly findings: () => Overview["findings"];
  readonly hub: () => ActivitySource;
  /** In a cluster: calls that wait at other nodes. */
  readonly others?: () => OtherApprovals | undefined;
  /** In a cluster: resolves when other nodes have the last answer. */
  readonly told?: () => Promise<void> | undefined;
}

interface OtherApprovals {
  pending(): AskRequest[];
  answer(id: string, answer: AskAnswer, by: Answerer): Promise<boolean>;
}

/** Before sessions are written, and after servers were started and the first lists answered: it takes the database's time. */
const TIDY_AFTER_MS = 2000;

export class HubActivity {
  readonly #options: ActivityOptions;
  readonly #startedAt: string;
  readonly #sessions: SessionRecords;
  readonly #storedSessions: Store["sessions"];
  readonly #approvals: ApprovalRecords;
  readonly #living: HubHeartbeats | undefined;
  readonly #housekeeping: Housekeeping | undefined;
  readonly #stops: (() => void)[];
  #stopWaiting = (): void => {};
  #announced: Promise<void> | undefined;
  #tidied: Promise<void> | undefined;
  #hasWarned = false;

  constructor(options: ActivityOptions) {
    const { clock, events, mask, store } = options;
    this.#options = options;
    this.#startedAt = new Date(clock.now()).toISOString();
    const hub = randomUUID();
    const onProblem = (error: unknown): void => this.#warn(error);
    this.#storedSessions = (store && (options.sessions ?? store.sessions)) ?? memorySessions();
    this.#sessions = new SessionRecords({ stored: this.#storedSessions, hub, clock, onProblem });
    const asked = (): AskRequest[] => this.#asked();
    const storedApprovals = store?.approvals ?? memoryApprovals();
    const { keepArguments = false } = options;
    const { hostOf, isChanged, changeOf } = options;
    this.#approvals = new ApprovalRecords({
      ...{ stored: storedApprovals, hub, clock, asked, mask, keepArguments, hostOf, isChanged, changeOf, onProblem },
      announced: () => this.#announce(),
    });
    this.#living = store && new HubHeartbeats({ store, hub, clock, onProblem });
    this.#housekeeping = store && this.#living && new Housekeeping({ store, hubs: this.#living, clock, onProblem });
    this.#stops = [
      events.on("session", ({ session, open }) => {
        if (session.unlisted === true) return;
        if (open) this.#sessions.opened(session);
        else this.#sessions.closed(session);
      }),
      // It is over at the moment: its own times are text.
      events.on("call", ({ session }) => this.#sessions.called(session, clock.now())),
      // Calls that wait at another node are stored there.
      events.on("ask", (request) => {
        if (request.node === undefined) this.#approvals.asked(request);
      }),
      events.on("answer", ({ request, answer }) => {
        if (request.node === undefined) this.#approvals.answered(request, answer);
      }),
    ];
  }

  /** Cleans up after dead hubs when the start is over, or before the first list that is asked for. */
  begin(): void {
    this.#sessions.opened(this.#options.hub().session);
    this.#stopWaiting = this.#options.clock.after(TIDY_AFTER_MS, () => void this.#tidy());
  }

  async sessions(input: CheckedInput<"listSessions">): Promise<OutputOf<"listSessions">> {
    const { state, door, limit, cursor } = input;
    await this.#tidy();
    await this.#sessions.flush();
    const { entries, total, nextCursor } = await this.#storedSessions.list({
      limit,
      cursor,
      ...(state === "all" ? {} : { state }),
      ...(door === undefined ? {} : { door }),
    });
    const sessions = await Promise.all(entries.map((stored) => this.#info(stored)));
    return { sessions, total, nextCursor };
  }

  /** Undefined if there is none. Tools and skills are empty for a session that is closed or at another hub. */
  async session(id: string): Promise<SessionDetail | undefined> {
    const stored = await this.#sessions.find(id);
    if (stored === undefined) return undefined;
    const session = this.#sessions.live(id);
    const hub = this.#options.hub();
    const skills = session === undefined ? [] : await hub.skills.active(session);
    const tools = session === undefined ? [] : hub.view(session).tools;
    return {
      ...(await this.#info(stored)),
      tools: tools.map(({ name }) => name),
      activeSkills: skills.map(({ name }) => name),
    };
  }

  /** Ends a session and its calls. */
  async closeSession(id: string): Promise<void> {
    const session = this.#sessions.live(id);
    if (session === this.#options.hub().session) {
      throw new ToolcribError("conflict", "This is the hub's own session. It ends with the hub.");
    }
    if (session !== undefined) {
      session.close();
      return this.#sessions.flush();
    }
    const stored = await this.#sessions.find(id);
    if (stored === undefined || stored.closedAt !== null) {
      throw new ToolcribError("not_found", `No session ${id} is open.`);
    }
    throw await this.#elsewhere("The session belongs to", stored.hub, "Close it there.");
  }

  async approvals(input: CheckedInput<"listApprovals">): Promise<OutputOf<"listApprovals">> {
    const { status, limit, cursor } = input;
    await this.#tidy();
    const { entries, total, nextCursor } = await this.#approvals.list({
      limit,
      cursor,
      ...(status === "all" ? {} : { status }),
    });
    return { approvals: entries, total, nextCursor };
  }

  async approval(id: string): Promise<Approval | undefined> {
    await this.#tidy();
    return this.#approvals.find(id);
  }

  /**
   * Answers a waiting call, and resolves when the answer is stored.
   * @param by The user who answers, where that is known.
   * @param door Through which the answer came.
   * @param caller The key of a caller who may answer for others only.
   */
  async answer(
    id: string,
    answer: AskAnswer,
    by: string | null,
    door: string | null = null,
    caller?: string,
  ): Promise<OutputOf<"answerApproval">> {
    const hub = this.#options.hub();
    const answerer: Answerer = { user: by, door, caller };
    const give = (): boolean => hub.approvals.answer(id, answer, answerer);
    if (await this.#approvals.answering(id, by, give)) {
      await this.#options.told?.();
      return { id, answer };
    }
    if (await this.#options.others?.()?.answer(id, answer, answerer)) return { id, answer };
    const other = await this.#approvals.waitsAt(id);
    if (other !== undefined) throw await this.#elsewhere("The call is waiting at", other, "Answer it there.");
    throw new ToolcribError("not_found", `No call with the id ${id} is waiting for an answer.`, {
      hint: "It may have been answered or withdrawn, or it timed out.",
    });
  }

  overview(): Overview {
    const { mask, findings } = this.#options;
    const hub = this.#options.hub();
    const servers: Record<string, number> = {};
    for (const { state } of hub.servers.list()) servers[state] = (servers[state] ?? 0) + 1;
    return mask({
      version: VERSION,
      ...(hub.internals.cluster === undefined ? {} : { node: hub.internals.cluster.node.name }),
      startedAt: this.#startedAt,
      store: hub.internals.store?.kind ?? "none",
      servers,
      tools: hub.view(hub.session).tools.length,
      skills: hub.skills.list().length,
      sessions: hub.internals.sessions().filter(({ unlisted }) => unlisted !== true).length,
      pendingApprovals: this.#asked().length,
      findings: findings(),
      warnings: hub
        .warnings()
        .flatMap(({ isFinding, server, message }) => (isFinding === true ? [] : [{ server, message }])),
    });
  }

  /** Writes what is left; called after the sessions and before the store are closed. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#sessions.closeAll();
    this.#stopWaiting();
    await this.#tidied;
    try {
      await this.#housekeeping?.end();
      await this.#approvals.flush();
      await this.#sessions.flush();
      if (this.#announced !== undefined) await this.#living?.end();
    } catch (error) {
      this.#warn(error);
    }
  }

  #asked(): AskRequest[] {
    return [...this.#options.hub().approvals.pending(), ...(this.#options.others?.()?.pending() ?? [])];
  }

  #info(stored: Parameters<typeof sessionInfo>[0]): Promise<SessionInfo> {
    const session = this.#sessions.live(stored.id);
    if (session === undefined) return sessionInfo(stored);
    const toolCount = this.#options.hub().view(session).tools.length;
    const live = { running: session.running.size, toolCount, conversation: session.editorId };
    return sessionInfo(this.#sessions.latest(stored), live);
  }

  async #elsewhere(what: string, id: string, hint: string): Promise<ToolcribError> {
    const pid = await this.#living?.processOf(id);
    const { url } = readHubRecords(this.#options.home).find((each) => each.pid === pid) ?? {};
    const where = url ?? (pid === undefined ? undefined : `process ${pid}`);
    const named = where === undefined ? "" : ` (${where})`;
    return new ToolcribError("conflict", `${what} another hub on the same store${named}.`, {
      hint,
      details: { url, pid },
    });
  }

  /** Once. Notes that this hub is alive, without which others would close what it stores. Never rejects. */
  #announce(): Promise<void> {
    const announce = async (): Promise<void> => this.#living?.begin();
    return (this.#announced ??= announce().catch((error: unknown) => this.#warn(error)));
  }

  /** Once. Never rejects. */
  #tidy(): Promise<void> {
    this.#stopWaiting();
    const tidy = async (): Promise<void> => {
      await this.#announce();
      await this.#housekeeping?.begin();
    };
    return (this.#tidied ??= tidy().catch((error: unknown) => this.#warn(error)));
  }

  /** Once: a store that fails does so again and again. */
  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `Sessions and approvals cannot be stored: ${asToolcribError(error).message}`;
    this.#options.events.emit("warning", { message });
  }
}
