/** Servers of the hub that are not there, told to a session: its first prompt has no tools of them. */
import type { Hub } from "../../hub/hub.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Session } from "../../sessions/session.ts";
import type { Notice } from "./notices.ts";

/** What the client knows: `late`: that it takes long. `absent`: that it did not come. `lost`: that it went away. */
type Told = "late" | "absent" | "up" | "lost";

export class HubServerNotices {
  readonly #hub: Hub;
  readonly #tell: (notice: Notice) => void;
  readonly #told = new Map<string, Told>();
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
        this.#say("info", info, `is still connecting after ${waitedMs / 1000} s; its tools join when it is ready.`);
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
      if (told === "late" || told === "absent") this.#say("info", info, "is connected now; its tools are there.");
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
