/** Keeps the skills of servers in step with the servers: they come when a server is ready and go when it is gone. */
import type { ServerInfo } from "../../model/server-state.ts";
import type { Machine } from "../../skills/needs/check-needs.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import { readServerSkills } from "./server-skills.ts";
import type { SkillSources } from "./skill-sources.ts";

interface ServerSkillOffersOptions {
  readonly sources: () => SkillSources;
  readonly machine: () => Machine;
  readonly mask: <Value>(value: Value) => Value;
  readonly warn: (message: string, server: string) => void;
}

/** The reading of one server's skills: one at a time, and once more if something changed meanwhile. */
interface Reading {
  readonly connection: ServerConnection;
  readonly stopListening: () => void;
  under: Promise<void> | undefined;
  again: boolean;
  over: boolean;
}

export class ServerSkillOffers {
  readonly #options: ServerSkillOffersOptions;
  readonly #readings = new Map<string, Reading>();

  constructor(options: ServerSkillOffersOptions) {
    this.#options = options;
  }

  /** Reads a server's skills again, if it offers any. */
  renew(connection: ServerConnection): void {
    const { id } = connection;
    const known = this.#readings.get(id);
    if (connection.skillOffer?.() === undefined) return this.drop(id);
    if (known?.connection === connection) return this.#read(known);
    if (known !== undefined) end(known);
    const reading: Reading = {
      connection,
      stopListening: this.#followChanges(connection),
      under: undefined,
      again: false,
      over: false,
    };
    this.#readings.set(id, reading);
    this.#read(reading);
  }

  drop(id: string): void {
    const reading = this.#readings.get(id);
    if (reading === undefined) return;
    end(reading);
    this.#readings.delete(id);
    this.#options.sources().offerServers(id, []);
  }

  /** For a server that changed its state: one that is on its way back keeps what it had. */
  follow({ id, state }: ServerInfo): void {
    if (state === "idle" || state === "disabled" || state === "failed" || state === "closed") this.drop(id);
  }

  async settled(): Promise<void> {
    await Promise.all([...this.#readings.values()].map(async ({ under }) => under));
  }

  /** A server tells of changed skills by telling of changed resources. */
  #followChanges(connection: ServerConnection): () => void {
    let { resources } = connection.definitions();
    return connection.onChange(() => {
      const now = connection.definitions().resources;
      if (now === resources) return;
      resources = now;
      const reading = this.#readings.get(connection.id);
      if (reading?.connection === connection) this.#read(reading);
    });
  }

  #read(reading: Reading): void {
    reading.again = true;
    reading.under ??= this.#readWhileChanging(reading).finally(() => (reading.under = undefined));
  }

  async #readWhileChanging(reading: Reading): Promise<void> {
    const { machine, mask, warn, sources } = this.#options;
    const { id } = reading.connection;
    while (reading.again && !reading.over) {
      reading.again = false;
      const offer = reading.connection.skillOffer?.();
      if (offer === undefined) return;
      const skills = await readServerSkills(offer, {
        server: id,
        machine: machine(),
        mask,
        known: sources().ofServer(id),
        warn: (message) => warn(message, id),
        isOver: () => reading.over,
      });
      if (!reading.over) sources().offerServers(id, skills);
    }
  }
}

function end(reading: Reading): void {
  reading.over = true;
  reading.stopListening();
}
