/** What a session says about its servers, for the run under way or else for the next one. */
import type { OwnParts, SessionNotice } from "../../sessions/own/own-parts.ts";
import type { AgentEvent } from "../events.ts";

const MOST_KEPT = 50;

type Emit = (event: AgentEvent) => void;

export class Notices {
  #kept: SessionNotice[];
  #emit: Emit | undefined;
  readonly #stop: () => void;
  readonly #late = new Set<string>();

  constructor(own: Pick<OwnParts, "notices" | "on">) {
    this.#kept = own.notices().slice(-MOST_KEPT);
    this.#stop = own.on("notice", (notice) => this.say(notice));
  }

  say(notice: SessionNotice): void {
    if (this.#emit !== undefined) this.#emit(eventOf(notice));
    else this.#kept = [...this.#kept, notice].slice(-MOST_KEPT);
  }

  /** Each of them once, by its id. */
  sayOfLate(servers: ReadonlyMap<string, string>): void {
    for (const [id, server] of servers) {
      if (this.#late.has(id)) continue;
      this.#late.add(id);
      this.say({ level: "info", message: `${server} is still connecting; its tools join when it is ready.`, server });
    }
  }

  /** What was said since the last run, and then what is said until the returned function is called. */
  tell(emit: Emit): () => void {
    for (const notice of this.#kept.splice(0)) emit(eventOf(notice));
    this.#emit = emit;
    return () => {
      this.#emit = undefined;
    };
  }

  close(): void {
    this.#stop();
  }
}

function eventOf({ level, message, hint, server }: SessionNotice): AgentEvent {
  return {
    type: "notice",
    level,
    message: hint === undefined ? message : `${message} ${hint}`,
    server,
  };
}
