/** `session/update` of one session, in the order in which they are given. */
import { type AgentContext, methods, type SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Hub } from "../../hub/hub.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Session } from "../../sessions/session.ts";

export class Updates {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  /** Text of the agent stands there that has not come to the end of a paragraph. */
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

  /** What comes now belongs to no text before. */
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
/** A server that comes and goes is told of so often, and no more. */
const MAX_REPEATS = 3;

/**
 * What a user should know: a server that failed, an entry that was left out. A client with a place for notices gets them at
 * once. Others have none, and not every one shows what comes outside a turn: there they wait for the next turn and stand
 * before its answer.
 */
export class Notices {
  readonly #updates: Updates;
  readonly #hasPlace: boolean;
  /** By what they say: the same twice is one. */
  readonly #waiting = new Map<string, { readonly notice: Notice; readonly times: number }>();
  readonly #shown = new Map<string, number>();
  /** What the session said and the run has not said yet: it says the same again. */
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

  /** The next run says all of these, which were told already. */
  expectFromRun(notices: readonly Notice[]): void {
    this.#ofSession = notices.map(noticeText).slice(-MAX_PENDING_NOTICES);
  }

  /** One that no run repeats. */
  add(notice: Notice): void {
    const text = noticeText(notice);
    const times = (this.#waiting.get(text)?.times ?? 0) + 1;
    // The last of several that are the same says how things stand.
    this.#waiting.delete(text);
    this.#waiting.set(text, { notice, times });
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size > MAX_PENDING_NOTICES) this.#waiting.delete(oldest);
    this.#flush();
  }

  /** The client knows the session from now on. */
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

/** A server's words can be among it: one line, and nothing in it is markdown. */
function escapeMarkdown(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*[\]<>~|]/g, "\\$&");
}

function noticeText({ message, hint }: Notice): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

/** What the client knows: `late`: that it takes long. `absent`: that it did not come. `lost`: that it went away. */
type ReportedState = "late" | "absent" | "up" | "lost";

/** Servers of the hub that are not there, told to a session: its first prompt has no tools of them. */
export class HubServerNotices {
  readonly #hub: Hub;
  readonly #tell: (notice: Notice) => void;
  readonly #told = new Map<string, ReportedState>();
  /** What servers there are is told to whoever sees all of them. */
  readonly #seesAll: boolean;
  #stop = (): void => {};

  constructor(hub: Hub, session: Session, tell: (notice: Notice) => void) {
    this.#hub = hub;
    this.#tell = tell;
    this.#seesAll = session.owner && session.role === undefined;
  }

  /** Nobody waits for them any longer. */
  begin(waitedMs: number): void {
    if (!this.#seesAll) return;
    this.#stop();
    for (const info of this.#hub.servers()) {
      if (info.state === "connecting" && !this.#told.has(info.id)) {
        this.#told.set(info.id, "late");
        this.#say(
          "info",
          info,
          `is still connecting after ${waitedMs / 1000} s; its tools are added when it is ready.`,
        );
      } else {
        this.#follow(info);
      }
    }
    this.#stop = this.#hub.on("server", ({ info }) => this.#follow(info));
  }

  close(): void {
    this.#stop();
  }

  #follow(info: ServerInfo): void {
    const told = this.#told.get(info.id);
    if (info.state === "ready") {
      if (told === "late" || told === "absent") this.#say("info", info, "is connected now; its tools are available.");
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
