/**
 * Logins of the page that all nodes of a cluster know: behind a balancer each request of a browser may come to another node,
 * and a link may be opened at another node than the one that made it. Digests only: what is shared opens nothing.
 */
import type { Cluster, SharedMap } from "../../../cluster/cluster.ts";
import type { Caller } from "../../../model/caller.ts";
import type { JsonObject } from "../../../model/json.ts";
import { callerFrom } from "../cluster/request-head.ts";

export interface SharedLogin {
  readonly caller: Caller;
  /** Hex. */
  readonly pageDigest: string;
  readonly endsAt: number;
}

interface SharedLoginsTimes {
  readonly codeMs: number;
  readonly idleMs: number;
}

/** A login may reach the next node a little later than the browser does. */
const ARRIVES_MS = 300;
/** Logins whose end could not be told are ended again so often until it could. */
const END_AGAIN_MS = 1000;

type LoginCluster = Pick<Cluster, "map" | "isUp">;

export class SharedLogins {
  readonly #codes: SharedMap;
  readonly #logins: SharedMap;
  readonly #cluster: LoginCluster;
  /** Ended here, and perhaps not for the others. */
  readonly #untold = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  private constructor(cluster: LoginCluster, codes: SharedMap, logins: SharedMap) {
    this.#cluster = cluster;
    this.#codes = codes;
    this.#logins = logins;
  }

  /** What is not written again within its time disappears from the maps. */
  static async open(cluster: LoginCluster, { codeMs, idleMs }: SharedLoginsTimes): Promise<SharedLogins> {
    return new SharedLogins(
      cluster,
      await cluster.map("login-codes", { ttlMs: codeMs }),
      await cluster.map("logins", { ttlMs: idleMs }),
    );
  }

  /** False if nobody else knows it. What could not be said to have arrived may have: it is taken away like any other. */
  async offerCode(digest: string): Promise<boolean> {
    if (!this.#cluster.isUp) return false;
    await told(this.#codes.put(digest, {}));
    return true;
  }

  /** True once, whichever node asks. Rejects where nobody can say. */
  takeCode(digest: string): Promise<boolean> {
    return this.#codes.take(digest);
  }

  /** A new one. False if the others could not be told. */
  put(digest: string, login: SharedLogin): Promise<boolean> {
    return told(this.#logins.put(digest, written(login)));
  }

  /** It is in use still. One that has ended stays ended. */
  async renew(digest: string, login: SharedLogin): Promise<void> {
    await told(this.#logins.renew(digest, written(login)));
  }

  get(digest: string): SharedLogin | undefined {
    const { caller, pageDigest, endsAt } = this.#logins.get(digest) ?? {};
    const known = callerFrom(caller);
    if (known === undefined || typeof pageDigest !== "string" || typeof endsAt !== "number") return undefined;
    return { caller: known, pageDigest, endsAt };
  }

  /** One that may be on its way still. */
  soon(digest: string): Promise<SharedLogin | undefined> {
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        stop();
        resolve(this.get(digest));
      };
      const timer = setTimeout(settle, ARRIVES_MS);
      const stop = this.#logins.onChange((key) => (key === digest ? settle() : undefined));
    });
  }

  /** For all nodes; where they cannot be told, as soon as they can. */
  async end(digest: string): Promise<void> {
    this.#untold.add(digest);
    if (await told(this.#logins.take(digest))) this.#untold.delete(digest);
    else this.#endAgainLater();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#untold.clear();
  }

  #endAgainLater(): void {
    if (this.#untold.size === 0) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const digest of this.#untold) void this.end(digest);
    }, END_AGAIN_MS).unref();
  }

  onEnd(listener: (digest: string) => void): () => void {
    return this.#logins.onChange((key) => (this.#logins.get(key) === undefined ? listener(key) : undefined));
  }
}

function written({ caller, pageDigest, endsAt }: SharedLogin): JsonObject {
  return { caller: { ...caller, scopes: [...caller.scopes] }, pageDigest, endsAt };
}

async function told(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch {
    return false;
  }
}
