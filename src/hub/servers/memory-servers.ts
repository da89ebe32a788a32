/** Servers of a hub without a store: they live as long as it does. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { StoredServer, StoredServers } from "../../store/store.ts";

export class MemoryServers implements StoredServers {
  readonly #servers = new Map<string, StoredServer>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async list(): Promise<StoredServer[]> {
    return [...this.#servers.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  }

  async get(id: string): Promise<StoredServer | undefined> {
    return this.#servers.get(id);
  }

  async insert({ id, entry, source }: Pick<StoredServer, "id" | "entry" | "source">): Promise<StoredServer> {
    if (this.#servers.has(id)) throw new ToolcribError("conflict", `There is a server "${id}" already.`);
    const now = this.#now();
    return this.#put({ id, entry: structuredClone(entry), source, createdAt: now, updatedAt: now, revision: 1 });
  }

  async update(id: string, entry: JsonObject, revision?: number): Promise<StoredServer> {
    const before = this.#require(id, revision);
    const after = { ...before, entry: structuredClone(entry), updatedAt: this.#now(), revision: before.revision + 1 };
    return this.#put(after);
  }

  async remove(id: string, revision?: number): Promise<void> {
    this.#require(id, revision);
    this.#servers.delete(id);
  }

  #require(id: string, revision: number | undefined): StoredServer {
    const server = this.#servers.get(id);
    if (server === undefined) throw new ToolcribError("not_found", `There is no server "${id}".`);
    if (revision !== undefined && revision !== server.revision) {
      throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`);
    }
    return server;
  }

  #put(server: StoredServer): StoredServer {
    this.#servers.set(server.id, server);
    return server;
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}
