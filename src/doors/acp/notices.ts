/**
 * What a user should know: a server that failed, an entry that was left out. A client with a place for notices gets them at
 * once. Others have none, and not every one shows what comes outside a turn: there they wait for the next turn and stand
 * before its answer.
 */
import type { Updates } from "./updates.ts";

export interface Notice {
  readonly level: "info" | "warning";
  readonly message: string;
  readonly hint?: string | undefined;
}

const MOST_KEPT = 50;
/** A server that comes and goes is told of so often, and no more. */
const MOST_REPEATED = 3;

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
    this.#ofSession = [...this.#ofSession, textOf(notice)].slice(-MOST_KEPT);
    this.add(notice);
  }

  tellOfRun(notice: Notice): void {
    const said = this.#ofSession.indexOf(textOf(notice));
    if (said === -1) this.add(notice);
    else this.#ofSession.splice(said, 1);
  }

  /** The next run says all of these, which were told already. */
  runWillSay(notices: readonly Notice[]): void {
    this.#ofSession = notices.map(textOf).slice(-MOST_KEPT);
  }

  /** One that no run repeats. */
  add(notice: Notice): void {
    const text = textOf(notice);
    const times = (this.#waiting.get(text)?.times ?? 0) + 1;
    // The last of several that are the same says how things stand.
    this.#waiting.delete(text);
    this.#waiting.set(text, { notice, times });
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size > MOST_KEPT) this.#waiting.delete(oldest);
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
      if (!this.#hasPlace || shown <= MOST_REPEATED) void this.#send(notice, times);
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
      .map(plain)
      .join(" ");
    return level === "info" ? this.#updates.thought(`${text}\n\n`) : this.#updates.paragraph(`> **Note:** ${text}`);
  }
}

/** A server's words can be among it: one line, and nothing in it is markdown. */
function plain(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*[\]<>~|]/g, "\\$&");
}

function textOf({ message, hint }: Notice): string {
  return hint === undefined ? message : `${message} ${hint}`;
}
