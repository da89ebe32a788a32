/** Outgoing notices of calls that wait for approval, and the signed links by which they are answered. */
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { retry } from "../../base/async.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { showHidden } from "../../base/visible-text.ts";
import type { Approval } from "../../contract/activity-schemas.ts";
import { ANSWER_PAGE_PATH, API_PATH } from "../../contract/rest.ts";
import { summarizeApproval } from "../../hub/activity/approval-records.ts";
import type { Hub } from "../../hub/hub.ts";
import type { NoticeSettings } from "../../model/config.ts";
import type { AskRequest } from "../../model/decision.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { parseJsonObject } from "../../model/json.ts";
import { checkRemoteAddress } from "../../upstream/http/address-policy.ts";
import { HttpClient } from "../../upstream/http/http-client.ts";
import type { HttpExchange, HttpRoute } from "./http-exchange.ts";
import { notFoundAt, refuseMethodUnless, sendJson } from "./http-responses.ts";

export interface ApprovalNoticesOptions {
  readonly hub: Pick<Hub, "on" | "config" | "approvals" | "internals">;
  /** The address at which people reach the hub, without a slash at its end. */
  readonly base: () => string;
  /** Signs the links; the same on all nodes of a cluster. */
  readonly secret: Uint8Array;
  readonly warn: (message: string) => void;
  readonly clock?: Clock;
  /** The pauses before further attempts. */
  readonly pausesMs?: readonly number[];
}

const PAUSES_MS = [1000, 5000, 25_000];
const ATTEMPT_MS = 10_000;
const MAX_RETRY_AFTER_MS = 60_000;
/** Of one notice at the same time: a client that asks without end must not fill the memory. */
const MAX_DELIVERIES = 20;

const LINKS_PATH = `${API_PATH}/approval-links`;
const ANSWER_PATH = `${LINKS_PATH}/answer`;

/** Strangers who share an address with the owner use up the requests of the address, not those of a link. */
const LINK_ROUTE = { access: "public", countsItself: true, bodyBytes: 16 * 1024 } as const;

/** The answers of links: one that lasts is given on the page. */
export type LinkAnswer = "once" | "no";

interface Notice {
  readonly name: string;
  readonly settings: NoticeSettings;
}

export class ApprovalNotices {
  readonly #options: ApprovalNoticesOptions;
  readonly #links: ApprovalLinks;
  readonly #http = new HttpClient();
  readonly #clock: Clock;
  /** Deliveries by approval: one that is answered needs no further attempt. */
  readonly #open = new Map<string, AbortController>();
  readonly #running = new Map<string, number>();
  readonly #stops: (() => void)[];

  constructor(options: ApprovalNoticesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#links = new ApprovalLinks(options.secret, this.#clock);
    const { hub } = options;
    this.#stops = [
      hub.on("ask", (request) => {
        // The node at which a call waits sends its notices.
        if (request.node === undefined) this.#asked(request);
      }),
      hub.on("answer", ({ request }) => this.#end(request.id)),
    ];
  }

  get routes(): HttpRoute[] {
    return [
      { ...LINK_ROUTE, path: LINKS_PATH, handle: (exchange) => this.#show(exchange) },
      { ...LINK_ROUTE, path: ANSWER_PATH, handle: (exchange) => this.#answer(exchange) },
    ];
  }

  close(): void {
    for (const stop of this.#stops) stop();
    for (const id of [...this.#open.keys()]) this.#end(id);
    this.#http.destroy();
  }

  #end(id: string): void {
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  #asked(request: AskRequest): void {
    const notices = Object.entries(this.#options.hub.config.config.approvals.notify);
    if (notices.length === 0) return;
    const ended = new AbortController();
    this.#open.set(request.id, ended);
    for (const [name, settings] of notices) {
      const running = this.#running.get(name) ?? 0;
      if (running >= MAX_DELIVERIES) {
        this.#options.warn(
          `The notice "${name}" was not sent for ${request.name}: ${running} others are on their way.`,
        );
        continue;
      }
      this.#running.set(name, running + 1);
      void this.#deliver({ name, settings }, request, ended.signal).finally(() =>
        this.#running.set(name, (this.#running.get(name) ?? 1) - 1),
      );
    }
  }

  /** Never rejects, and nothing waits for it. */
  async #deliver(notice: Notice, { id }: AskRequest, signal: AbortSignal): Promise<void> {
    const { hub, warn, pausesMs = PAUSES_MS } = this.#options;
    let host = "its address";
    try {
      const approval = await hub.internals.activity.approval(id);
      if (approval === undefined || signal.aborted) return;
      const address = checkRemoteAddress(await hub.internals.resolve(notice.settings.url));
      host = address.host;
      const message = await this.#message(notice, approval, address);
      await retry(() => this.#post(notice, message, signal), {
        attempts: pausesMs.length + 1,
        delayMs: (failed, error) => retryAfterOf(error) ?? pausesMs[failed - 1] ?? 0,
        isWorthRetrying,
        signal,
        clock: this.#clock,
      });
    } catch (error) {
      // The address may hold a secret in its path, so errors that quote it are not repeated.
      if (!signal.aborted) warn(`The notice "${notice.name}" was not delivered to ${host}: ${reasonOf(error)}.`);
    }
  }

  async #message(notice: Notice, approval: Approval, address: URL): Promise<Message> {
    const { hub, base } = this.#options;
    const { settings, name } = notice;
    const page = `${base()}/approvals`;
    const link = (answer: LinkAnswer): string =>
      `${base()}${ANSWER_PAGE_PATH}#${this.#links.sign({ approval: approval.id, answer, notice: name, until: Date.parse(approval.expiresAt) })}`;
    const links = settings.answers ? { page, allowOnce: link("once"), deny: link("no") } : { page };
    const secret = (text: string | undefined): Promise<string | undefined> =>
      text === undefined ? Promise.resolve(undefined) : hub.internals.resolve(text);
    const facts = { approval, links, waiting: hub.approvals.pending().length, withArguments: settings.arguments };
    return {
      ...FORMS[settings.type](facts, address),
      secret: await secret(settings.secret),
      token: await secret(settings.token),
    };
  }

  async #post({ settings }: Notice, { url, body, secret, token }: Message, ended: AbortSignal): Promise<void> {
    const text = JSON.stringify(body);
    const seconds = Math.floor(this.#clock.now() / 1000);
    const signature = secret && createHmac("sha256", secret).update(`${seconds}.${text}`).digest("hex");
    const response = await this.#http.request({
      method: "POST",
      url,
      headers: {
        "content-type": "application/json",
        "user-agent": "toolcrib",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(signature === undefined ? {} : { "toolcrib-signature": `t=${seconds},v1=${signature}` }),
        ...(settings.type === "webhook" ? { "toolcrib-event": "approval.requested" } : {}),
      },
      body: text,
      signal: AbortSignal.any([ended, AbortSignal.timeout(ATTEMPT_MS)]),
    });
    response.body.destroy();
    if (response.status >= 300) throw new RefusedNotice(response.status, response.headers["retry-after"]);
  }

  /** Shows the call of a link. Nothing is answered by it, whoever opens it. */
  async #show(exchange: HttpExchange): Promise<void> {
    const link = await this.#linked(exchange, LINKS_PATH);
    if (link === undefined) return;
    const { approval, answer, notice } = link;
    const found = await this.#options.hub.internals.activity.approval(approval);
    if (found?.status !== "pending") throw overError();
    sendJson(exchange.response, 200, { approval: found, answer, notice });
  }

  async #answer(exchange: HttpExchange): Promise<void> {
    const link = await this.#linked(exchange, ANSWER_PATH);
    if (link === undefined) return;
    const { approval, answer, notice } = link;
    try {
      sendJson(
        exchange.response,
        200,
        await this.#options.hub.internals.activity.answer(approval, answer, notice, "notice"),
      );
    } catch (error) {
      if (error instanceof ToolcribError && error.code === "not_found") throw overError();
      throw error;
    }
  }

  /** Undefined where the request has been answered already. */
  async #linked(exchange: HttpExchange, path: string): Promise<SignedAnswer | undefined> {
    const isAnswer = exchange.path === path && exchange.request.method === "POST";
    const body = isAnswer ? await exchange.readBody().catch(asToolcribError) : undefined;
    const { token } = (Buffer.isBuffer(body) && parseJsonObject(body.toString("utf8"))) || {};
    const link = typeof token === "string" ? this.#links.read(token) : undefined;
    if (exchange.refuseTooMany(link && `link ${link.approval}`)) return undefined;
    if (exchange.path !== path) throw notFoundAt(exchange.path);
    if (refuseMethodUnless(exchange, ["POST"])) return undefined;
    if (body instanceof ToolcribError) throw body;
    // A notice that was taken out of the config answers no more.
    const isKnown = link && this.#options.hub.config.config.approvals.notify[link.notice]?.answers === true;
    if (link !== undefined && isKnown === true) return link;
    throw new ToolcribError("unauthorized", "This link is not valid, or no longer.", {
      hint: "Answer the call on the page under Approvals, or with `toolcrib approve`.",
    });
  }
}

function overError(): ToolcribError {
  return new ToolcribError("not_found", "This call no longer waits for an answer.", {
    hint: "It was answered or withdrawn, or its time was up. A link works once.",
  });
}

interface SignedAnswer {
  readonly approval: string;
  readonly answer: LinkAnswer;
  readonly notice: string;
  readonly until: number;
}

const MAX_TOKEN_LENGTH = 2000;

/** Each link is for one answer to one call. It works once, because an answered call is not waiting. */
class ApprovalLinks {
  readonly #key: Buffer;
  readonly #clock: Clock;

  constructor(secret: Uint8Array, clock: Clock) {
    this.#key = createHmac("sha256", secret).update("toolcrib approval links").digest();
    this.#clock = clock;
  }

  sign({ approval, answer, notice, until }: SignedAnswer): string {
    const text = Buffer.from(JSON.stringify([approval, answer, notice, until])).toString("base64url");
    return `${text}.${this.#signature(text).toString("base64url")}`;
  }

  read(token: string): SignedAnswer | undefined {
    const [text = "", signature = "", ...more] = token.length > MAX_TOKEN_LENGTH ? [] : token.split(".");
    const given = Buffer.from(signature, "base64url");
    const expected = this.#signature(text);
    if (more.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    // Signed, so it is what `sign` wrote.
    const [approval, answer, notice, until] = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as [
      string,
      LinkAnswer,
      string,
      number,
    ];
    return until > this.#clock.now() ? { approval, answer, notice, until } : undefined;
  }

  #signature(text: string): Buffer {
    return createHmac("sha256", this.#key).update(text).digest();
  }
}

class RefusedNotice extends Error {
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, retryAfter: string | undefined) {
    super(`HTTP ${status}`);
    this.status = status;
    const seconds = Number(retryAfter);
    this.retryAfterMs = seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
  }
}

function retryAfterOf(error: unknown): number | undefined {
  return error instanceof RefusedNotice ? error.retryAfterMs : undefined;
}

function isWorthRetrying(error: unknown): boolean {
  if (error instanceof RefusedNotice) return error.status >= 500 || error.status === 408 || error.status === 429;
  return !(error instanceof ToolcribError) || error.code === "server_unavailable" || error.code === "cancelled";
}

function reasonOf(error: unknown): string {
  if (error instanceof RefusedNotice) return error.message;
  const { code, details, message } = asToolcribError(error);
  if (code === "invalid_config" || code === "unauthorized") return message.replace(/\.$/, "");
  if (code === "cancelled") return "no answer in time";
  const reason = details?.["reason"];
  return typeof reason === "string" && reason !== "" ? reason : "it cannot be reached";
}

interface Facts {
  readonly approval: Approval;
  readonly links: { readonly page: string; readonly allowOnce?: string; readonly deny?: string };
  /** This call and others. */
  readonly waiting: number;
  readonly withArguments: boolean;
}

interface Form {
  readonly url: URL;
  readonly body: object;
}

interface Message extends Form {
  readonly secret: string | undefined;
  readonly token: string | undefined;
}

const FORMS: Readonly<Record<NoticeSettings["type"], (facts: Facts, url: URL) => Form>> = {
  webhook({ approval, links, waiting, withArguments }, url) {
    const whole = summarizeApproval(approval, (value) => value);
    // The entries of lasting answers have values of arguments, or a hash of them.
    const { arguments: _args, risks: _risks, lasting: _lasting, ...rest } = whole;
    const shown = withArguments ? whole : rest;
    return { url, body: { type: "approval.requested", delivery: randomUUID(), approval: shown, waiting, links } };
  },

  slack(facts, url) {
    const text = linesOf(facts, slackText).join("\n");
    const buttons = buttonsOf(facts).map(({ label, link, style }) => ({
      type: "button",
      text: { type: "plain_text", text: label },
      url: link,
      ...(style === undefined ? {} : { style }),
    }));
    const blocks = [
      { type: "section", text: { type: "mrkdwn", text, verbatim: true } },
      { type: "actions", elements: buttons },
    ];
    return { url, body: { text: slackText(titleOf(facts)), blocks, unfurl_links: false, unfurl_media: false } };
  },

  discord(facts, url) {
    const links = buttonsOf(facts).map(({ label, link }) => `[${label}](<${link}>)`);
    const content = [...linesOf(facts, discordText), links.join("  ·  ")].join("\n");
    // No embeds, and no one is mentioned whatever the text says.
    return { url, body: { content, flags: 4, allowed_mentions: { parse: [] } } };
  },

  ntfy(facts, url) {
    const [topic = ""] = url.pathname.split("/").slice(-1);
    const actions = buttonsOf(facts).map(({ label, link }) => ({ action: "view", label, url: link, clear: true }));
    const [title = "", ...lines] = linesOf(facts, (text) => text);
    const body = { topic, title, message: lines.join("\n"), priority: 4, click: facts.links.page, actions };
    return { url: new URL(".", url), body };
  },
};

function buttonsOf({ links }: Facts): { label: string; link: string; style?: "primary" }[] {
  const { page, allowOnce, deny } = links;
  return [
    ...(deny === undefined ? [] : [{ label: "Deny", link: deny, style: "primary" as const }]),
    ...(allowOnce === undefined ? [] : [{ label: "Allow once", link: allowOnce }]),
    { label: "Open", link: page },
  ];
}

/** Chats refuse longer messages. */
const MAX_LINE_LENGTH = 400;

function titleOf({ approval: { name, origin } }: Facts): string {
  return cut(`Approval needed: ${name} on ${origin.source}`);
}

function linesOf(facts: Facts, escape: (text: string) => string): string[] {
  const { approval, waiting, withArguments } = facts;
  const { session, reason, expiresAt, risks = [], changed } = approval;
  const who = [session.client?.name, session.user, session.role].filter((each) => each !== undefined);
  const args = summarizeApproval(approval, (value) => value).arguments;
  return [
    titleOf(facts),
    changed === true ? "Its definition is not the one that was approved." : "",
    `Asked by ${who.length === 0 ? "a client" : who.join(", ")} through ${session.door}.`,
    reason,
    withArguments ? JSON.stringify(args) : "",
    risks.length === 0 ? "" : `Look at: ${[...new Set(risks.map(({ risk }) => RISK_WORDS[risk]))].join(", ")}.`,
    `Waits until ${expiresAt.slice(11, 19)} UTC.${waiting > 1 ? ` ${waiting} calls wait in all.` : ""}`,
  ].flatMap((line) => (line === "" ? [] : [escape(cut(line))]));
}

const RISK_WORDS: Readonly<Record<NonNullable<Approval["risks"]>[number]["risk"], string>> = {
  outside: "a path outside its folders",
  host: "an address on another host",
  shell: "characters that a shell acts on",
  rule: "the values that the rule looks at",
};

function cut(text: string): string {
  const shown = showHidden(text).replaceAll(/[\r\n]+/g, " ");
  const line = shown.length > MAX_LINE_LENGTH ? `${shown.slice(0, MAX_LINE_LENGTH).toWellFormed()}…` : shown;
  // Chats make links of addresses, also of bare names and mailboxes: only the hub's own links are to be followed.
  return line.replaceAll(/(?<=\S)(?:[.。．｡@](?=\S)|:(?=\S))/g, "\u200b$&\u200b");
}

function slackText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/[*_~`]/g, "\u200b$&");
}

function discordText(text: string): string {
  return text.replaceAll(/[\\*_~`|>[\]()#<]/g, "\\$&");
}
