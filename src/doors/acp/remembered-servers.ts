/**
 * The servers that sessions had, for a client that resumes one without naming them. They hold keys of the client's user: the
 * store has them sealed only, and without a store they are gone with the process.
 */
import type { Hub } from "../../hub/hub.ts";
import { sealedServersOf } from "../../hub/sealed-servers.ts";

export class RememberedServers {
  readonly #hub: Hub;
  readonly #here = new Map<string, readonly unknown[]>();

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  async keep(sessionId: string, servers: readonly unknown[]): Promise<void> {
    this.#here.set(sessionId, servers);
    const { sealed } = this.#hub;
    if (servers.length > 0) await sealed?.put(sealedServersOf(sessionId), JSON.stringify(servers));
    else await sealed?.remove(sealedServersOf(sessionId));
  }

  /** Rejects if they are kept and cannot be opened: a session without its tools must not look whole. */
  async of(sessionId: string): Promise<readonly unknown[]> {
    const here = this.#here.get(sessionId);
    if (here !== undefined) return here;
    const { sealed, store } = this.#hub;
    if (sealed === undefined || (await store?.sealed.get(sealedServersOf(sessionId))) === undefined) return [];
    const servers: unknown = JSON.parse(await sealed.get(sealedServersOf(sessionId)));
    return Array.isArray(servers) ? servers : [];
  }

  async forget(sessionId: string): Promise<void> {
    this.#here.delete(sessionId);
    await this.#hub.sealed?.remove(sealedServersOf(sessionId));
  }
}
