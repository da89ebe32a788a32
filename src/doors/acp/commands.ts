/** The skills that a user can call, told to the client whenever they are others than before. */
import type { AvailableCommand } from "@agentclientprotocol/sdk/unstable";
import type { SlashCommand } from "../../agent/agent-options.ts";
import type { Hub } from "../../hub/hub.ts";
import type { Session } from "../../sessions/session.ts";
import type { Updates } from "./updates.ts";

export class Commands {
  readonly #list: () => readonly SlashCommand[];
  readonly #updates: Updates;
  readonly #stops: readonly (() => void)[];
  #told: string | undefined;
  #pending: NodeJS.Immediate | undefined;

  constructor(hub: Hub, session: Session, list: () => readonly SlashCommand[], updates: Updates) {
    this.#list = list;
    this.#updates = updates;
    const changed = (): void => this.#soon();
    this.#stops = [
      hub.on("skills", changed),
      hub.on("catalog", changed),
      hub.on("visibility", changed),
      session.own.on("change", changed),
    ];
  }

  /** The client knows the session, or knows it anew. */
  opened(): void {
    this.#told = undefined;
    this.#tell();
  }

  close(): void {
    clearImmediate(this.#pending);
    for (const stop of this.#stops) stop();
  }

  /** Several changes at once are one. Before the client knows the session there is nobody to tell. */
  #soon(): void {
    if (this.#told === undefined || this.#pending !== undefined) return;
    this.#pending = setImmediate(() => {
      this.#pending = undefined;
      this.#tell();
    });
  }

  #tell(): void {
    const availableCommands = this.#list().map(availableCommand);
    const now = JSON.stringify(availableCommands);
    if (now === this.#told) return;
    this.#told = now;
    void this.#updates.send({ sessionUpdate: "available_commands_update", availableCommands });
  }
}

function availableCommand({ name, description, hint }: SlashCommand): AvailableCommand {
  return { name, description, ...(hint === undefined ? {} : { input: { hint } }) };
}
