/** One server that a session brought, from its first attempt to connect to its end, and what is said about it meanwhile. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import { Connection } from "../../upstream/connection.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { CappedSource } from "./capped-source.ts";
import type { SessionNotice } from "./own-parts.ts";
import type { BroughtServer } from "./read-servers.ts";

export interface OwnServerEvents {
  readonly tell: (notice: SessionNotice) => void;
  readonly onState: (info: ServerInfo) => void;
  readonly onReady: (connection: Connection) => void;
  /** It has other tools than before. */
  readonly onCount: () => void;
  readonly onResource: (source: string, uri: string) => void;
}

export interface OwnServerFacts {
  readonly brought: BroughtServer;
  readonly id: string;
  readonly shownAs: string;
}

/** What the client knows of it: `late`: that it takes long. `absent`: that it did not come. `lost`: that it went away. */
type Told = "nothing" | "late" | "absent" | "up" | "lost" | "gone";

export class OwnServer {
  readonly brought: BroughtServer;
  readonly connection: Connection;
  readonly source: CappedSource;
  /** What stands for it in public names. */
  shownAs: string;
  readonly #events: OwnServerEvents;
  readonly #stops: (() => void)[];
  #first: Promise<void> = Promise.resolve();
  #told: Told = "nothing";
  #toldLeftOut = 0;
  #toldRefused = false;

  constructor({ brought, id, shownAs }: OwnServerFacts, deps: ConnectionDeps, events: OwnServerEvents) {
    this.brought = brought;
    this.shownAs = shownAs;
    this.#events = events;
    this.connection = new Connection({ ...brought.spec, id }, deps);
    this.source = new CappedSource(this.connection, {
      onCount: events.onCount,
      onRun: (error) => this.#ran(error),
    });
    this.#stops = [
      this.connection.on("state", ({ state }) => this.#follow(state)),
      this.connection.on("resource-updated", ({ uri }) => events.onResource(this.id, uri)),
    ];
  }

  get id(): string {
    return this.connection.id;
  }

  get name(): string {
    return this.brought.name;
  }

  /** Resolves when the first attempt has come to an end, whichever. */
  get first(): Promise<void> {
    return this.#first;
  }

  /** @param after What has to end before, such as the process that it takes the place of. */
  start(after: Promise<void>): void {
    this.#first = after.then(() => this.connection.connect());
  }

  /** Another try for one that has failed; the others stay as they are. */
  retry(): void {
    if (this.connection.state.kind !== "failed") return;
    this.#told = "nothing";
    this.start(Promise.resolve());
  }

  /** Nobody waits for it any longer. */
  passOver(waitedMs: number): void {
    const { kind } = this.connection.state;
    if (this.#told !== "nothing" || (kind !== "connecting" && kind !== "idle")) return;
    this.#told = "late";
    this.#tell("info", `is still connecting after ${waitedMs / 1000} s; its tools join when it is ready.`);
  }

  setCap(cap: number): void {
    this.source.setCap(cap);
    const { leftOut, count } = this.source;
    if (leftOut === this.#toldLeftOut) return;
    this.#toldLeftOut = leftOut;
    if (leftOut === 0) return;
    this.#tell(
      "warning",
      `offers ${count} tools, and ${leftOut} of them are left out: a session may bring only so many.`,
    );
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.source.close();
    await this.connection.close();
  }

  #follow(state: ServerState): void {
    this.#events.onState(this.connection.info());
    if (state.kind === "ready") {
      this.#events.onReady(this.connection);
      if (this.#told === "late" || this.#told === "absent")
        this.#tell("info", "is connected now; its tools are there.");
      else if (this.#told === "lost" || this.#told === "gone") this.#tell("info", "is back.");
      this.#told = "up";
    } else if (state.kind === "restarting" || state.kind === "failed") {
      this.#down(state);
    }
  }

  #down({ kind, reason, hint }: Extract<ServerState, { kind: "restarting" | "failed" }>): void {
    const again = kind === "restarting" ? " It is tried again." : "";
    if (this.#told === "up") {
      this.#told = kind === "failed" ? "gone" : "lost";
      const meanwhile =
        kind === "failed"
          ? "Its tools answer with an error."
          : "It is restarted; its tools answer with an error until then.";
      this.#tell("warning", `was lost: ${closed(reason)} ${meanwhile}`, hint);
    } else if (this.#told === "nothing" || this.#told === "late") {
      this.#told = "absent";
      this.#tell("warning", `could not be connected: ${closed(reason)}${again}`, hint);
    } else if (kind === "failed" && this.#told !== "gone") {
      this.#told = "gone";
      this.#tell("warning", `is given up: ${closed(reason)}`, hint);
    }
  }

  /** The error of each use itself says it too; but who is to send other credentials is the client, not the model. */
  #ran(error: unknown): void {
    const status = error instanceof ToolcribError ? error.details?.["status"] : undefined;
    if (status !== 401 && status !== 403) {
      if (error === undefined) this.#toldRefused = false;
      return;
    }
    if (this.#toldRefused) return;
    this.#toldRefused = true;
    this.#tell(
      "warning",
      `answered ${status}: its credentials are no longer accepted, and its tools answer with an error.`,
      "Send the server again with new credentials.",
    );
  }

  #tell(level: SessionNotice["level"], what: string, hint?: string): void {
    const message = `The server "${this.name}" ${what}`;
    this.#events.tell({ level, server: this.name, message, hint });
  }
}

function closed(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
