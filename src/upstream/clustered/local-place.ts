/** A server that runs at this node, as its own sessions use it. */
import type { Result } from "../../model/protocol.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { SessionContext } from "../../model/session.ts";
import type { Definitions, Use, UseContext } from "../../model/source.ts";
import type { SkillOffer } from "../skill-offer.ts";
import type { LocalServer } from "./local-server.ts";
import type { Place } from "./place.ts";
import type { SlotHost } from "./slot-host.ts";

export class LocalPlace implements Place {
  readonly node: string;
  readonly #server: LocalServer;
  readonly #host: SlotHost | undefined;

  /** @param host Absent where it runs without a lease. */
  constructor(node: string, server: LocalServer, host: SlotHost | undefined) {
    this.node = node;
    this.#server = server;
    this.#host = host;
  }

  get slot(): number {
    return this.#host?.slot ?? Number.POSITIVE_INFINITY;
  }

  get mark(): string {
    return `here ${this.#server.number}`;
  }

  get state(): ServerState {
    return this.#server.state;
  }

  get isOpen(): boolean {
    return this.#host?.isOpen ?? true;
  }

  info(): ServerInfo {
    return this.#server.connection.info();
  }

  definitions(): Definitions {
    return this.#server.connection.definitions();
  }

  instructions(user?: string): string | null {
    return this.#server.connection.instructions(user);
  }

  skillOffer(): SkillOffer | undefined {
    return this.#server.connection.skillOffer?.();
  }

  run(use: Use, context: UseContext): Promise<Result> {
    return (this.#host ?? this.#server).run(use, context);
  }

  refresh(): Promise<void> {
    return this.#server.connection.refresh();
  }

  async connectUser(user: string): Promise<ServerInfo> {
    return (await this.#server.connection.connectUser?.(user)) ?? this.info();
  }

  rootsChanged(): void {
    void this.#server.connection.rootsChanged();
  }

  setLogLevel(level: string): void {
    void this.#server.connection.setLogLevel(level);
  }

  startSession(session: SessionContext): void {
    this.#server.connection.startSession?.(session);
  }

  endSession(sessionId: string): void {
    this.#server.endSession(sessionId);
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#server.resume(session, uris);
  }
}
