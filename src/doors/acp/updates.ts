/** `session/update` of one session, in the order in which they are given. */
import { type AgentContext, methods, type SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Hub } from "../../hub/hub.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Session } from "../../sessions/session.ts";

export class Updates {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  /** The agent's last text has not ended its paragraph. */
  #inText = false;

  constructor(client: AgentContext, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  /** Resolves when it is written. Never rejects: a client that is gone wants no updates, and its sessions end by themselves. */
  async send(update: SessionUpdate): Promise<void> {
    await this.#client
      .notify(methods.client.session.update, { sessionId: this.#sessionId, update })
      .catch(() => undefined);
  }

  text(text: string): Promise<void> {
    if (text !== "") this.#inText = !text.endsWith("\n\n");
    return this.send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  thought(text: string): Promise<void> {
    return this.send({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  /** Text with blank lines around it. */
  paragraph(text: string): Promise<void> {
    return this.text(`${this.#inText ? "\n\n" : ""}${text}\n\n`);
  }

  /** Starts a new paragraph. */
  turnBegins(): void {
    this.#inText = false;
  }
}

export interface Notice {
  readonly level: "info" | "warning";
  readonly message: string;
  readonly hint?: string | undefined;
}

const MAX_PENDING_NOTICES = 50;
/** A server that keeps reconnecting is reported this often. */
const MAX_REPEATS = 3;

/**
 * Notices for the user, such as a server that failed. A client that supports notices gets them at once. Others do not all show
 * updates outside a turn: there notices wait for the next turn and come before its answer.
 */
export class Notices {
  readonly #updates: Updates;
  readonly #hasPlace: boolean;
  /** By what they say: the same twice is one. */
  readonly #waiting = new Map<string, { readonly notice: Notice; readonly times: number }>();
  readonly #shown = new Map<string, number>();
  /** Notices of the session that the next run will repeat. */
  #ofSession: string[] = [];
  #open = false;
  #inTurn = false;

  constructor(updates: Updates, { hasPlace }: { readonly hasPlace: boolean }) {
    this.#updates = updates;
    this.#hasPlace = hasPlace;
  }

  tell(notice: Notice): void {
    this.#ofSession = [...this.#ofSession, noticeText(notice)].slice(-MAX_PENDING_NOTICES);
    this.add(notice);
  }

  addFromRun(notice: Notice): void {
    const said = this.#ofSession.indexOf(noticeText(notice));
    if (said === -1) this.add(notice);
    else this.#ofSession.splice(said, 1);
  }

  /** The next run repeats all of these, which were shown already. */
  expectFromRun(notices: readonly Notice[]): void {
    this.#ofSession = notices.map(noticeText).slice(-MAX_PENDING_NOTICES);
  }

  /** Adds a notice that no run repeats. */
  add(notice: Notice): void {
    const text = noticeText(notice);
    const times = (this.#waiting.get(text)?.times ?? 0) + 1;
    // The last of several equal notices is the current one.
    this.#waiting.delete(text);
    this.#waiting.set(text, { notice, times });
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size > MAX_PENDING_NOTICES) this.#waiting.delete(oldest);
    this.#flush();
  }

  /** The client knows the session now. */
  opened(): void {
    this.#open = true;
    this.#flush();
  }

  /** A client that prompts knows the session. */
  turnBegins(): void {
    this.#open = true;
    this.#inTurn = true;
    this.#flush();
  }

  turnEnds(): void {
    this.#inTurn = false;
  }

  #flush(): void {
    if (!this.#open || !(this.#hasPlace || this.#inTurn)) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [text, { notice, times }] of waiting) {
      const shown = (this.#shown.get(text) ?? 0) + 1;
      this.#shown.set(text, shown);
      if (!this.#hasPlace || shown <= MAX_REPEATS) void this.#send(notice, times);
    }
  }

  #send({ level, message, hint }: Notice, times: number): Promise<void> {
    const title = times === 1 ? message : `${message} (${times} times)`;
    if (this.#hasPlace) {
      const description = hint === undefined ? {} : { description: hint };
      return this.#updates.send({ sessionUpdate: "notice", severity: level, title, ...description });
    }
    const text = [title, hint]
      .filter((part) => part !== undefined)
      .map(escapeMarkdown)
      .join(" ");
    return level === "info" ? this.#updates.thought(`${text}\n\n`) : this.#updates.paragraph(`> **Note:** ${text}`);
  }
}

/** It can quote a server, so it becomes one line without markdown. */
function escapeMarkdown(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*[\]<>~|]/g, "\\$&");
}

function noticeText({ message, hint }: Notice): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

/** The last report about a server: `late`, it is still connecting; `absent`, it failed; `lost`, it disconnected. */
type ReportedState = "late" | "absent" | "up" | "lost";

/** Reports servers of the hub that are not connected: the first prompt of a session lacks their tools. */
export class HubServerNotices {
  readonly #hub: Hub;
  readonly #tell: (notice: Notice) => void;
  readonly #told = new Map<string, ReportedState>();
  /** Only a session that sees all servers may learn which there are. */
  readonly #seesAll: boolean;
  #stop = (): void => {};

  constructor(hub: Hub, session: Session, tell: (notice: Notice) => void) {
    this.#hub = hub;
    this.#tell = tell;
    this.#seesAll = session.owner && session.role === undefined;
  }

  /** The session no longer waits for them. */
  begin(waitedMs: number): void {
    if (!this.#seesAll) return;
    this.#stop();
    for (const info of this.#hub.servers.list()) {
      // One that is known from an earlier run can be used already.
      if (info.state === "connecting" && info.toolCount === 0 && !this.#told.has(info.id)) {
        this.#told.set(info.id, "late");
        this.#say(
          "info",
          info,
          `is still connecting after ${Math.round(waitedMs / 100) / 10} s${info.progress === undefined ? "" : ` (${info.progress})`}; its tools are added when it is ready.`,
        );
      } else {
        this.#follow(info);
      }
    }
    this.#stop = this.#hub.on("server", ({ info }) => this.#follow(info));
  }

  /** Whether the user knows already that this server of the hub is still connecting. */
  saidLate(name: string | undefined): boolean {
    return this.#hub.servers.list().some((info) => info.name === name && this.#told.get(info.id) === "late");
  }

  close(): void {
    this.#stop();
  }

  #follow(info: ServerInfo): void {
    const told = this.#told.get(info.id);
    if (info.state === "ready") {
      if (told === "late" || told === "absent") {
        const unread = info.warnings.find((warning) => warning.startsWith("tools/list could not be read"));
        if (info.toolCount > 0) this.#say("info", info, "is connected now; its tools are available.");
        else if (unread === undefined) this.#say("info", info, "is connected now; it offers no tools.");
        else this.#say("warning", info, `is connected now, but offers no tools: ${unread}`);
      }
      if (told === "lost") this.#say("info", info, "is back.");
      this.#told.set(info.id, "up");
    } else if (info.state === "failed" || info.state === "restarting") {
      if (told === "absent" || told === "lost") return;
      this.#told.set(info.id, told === "up" ? "lost" : "absent");
      const what = told === "up" ? "was lost" : "could not be connected";
      this.#say("warning", info, `${what}: ${info.lastError ?? info.state}`, info.hint);
    } else if (info.state === "closed" || info.state === "disabled" || info.state === "idle") {
      this.#told.delete(info.id);
    }
  }

  #say(level: Notice["level"], { name }: ServerInfo, what: string, hint?: string): void {
    this.#tell({ level, message: `The server "${name}" of the hub ${what}`, hint });
  }
}
