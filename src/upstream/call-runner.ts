/** Runs uses on the link that a Connection has, once more where that is safe, and knows which are under way. */
import type { Clock } from "../model/clock.ts";
import { asToolcribError, type ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { Use, UseContext } from "../model/source.ts";
import { isLoginNeeded } from "../secrets/oauth/failures.ts";
import { maskError, removed } from "./call-failure.ts";
import { isSessionLost, isUnreachable, remedyFor } from "./call-remedy.ts";
import { type CallSetting, runOn } from "./calls.ts";
import type { Link } from "./link.ts";
import type { LiveLists } from "./live-lists.ts";
import type { ResourceSubscriptions } from "./resource-subscriptions.ts";

/** The Connection, as far as its calls need it. */
export interface LinkKeeper {
  /** The link in use. */
  readonly link: () => Link | undefined;
  readonly spec: () => ServerSpec;
  readonly deps: CallSetting["deps"];
  readonly lists: LiveLists;
  readonly subscriptions: ResourceSubscriptions;
  /** Waits for a link that is being made; rejects if there is none to wait for. */
  usableLink(signal: AbortSignal): Promise<Link>;
  /** Replaces this link, unless that has been done. */
  reconnect(link: Link, sessionLost?: boolean): Promise<void>;
  /** Nothing works on this link without a new login. */
  lostLogin(error: ToolcribError): void;
  /** Has a modern server tell of exactly these resources. */
  follow(uris: readonly string[]): Promise<void>;
  readonly mask: (text: string) => string;
}

export class CallRunner {
  readonly #keeper: LinkKeeper;
  readonly #setting: CallSetting;
  #running = 0;
  #retired = false;
  #idleWaiters: (() => void)[] = [];

  constructor(keeper: LinkKeeper) {
    this.#keeper = keeper;
    this.#setting = {
      get spec() {
        return keeper.spec();
      },
      deps: keeper.deps,
      findTool: (name) => keeper.lists.findTool(name),
      readTools: () => keeper.lists.readNow("tools"),
    };
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const keeper = this.#keeper;
    if (this.#retired) throw removed(keeper.spec().id);
    this.#running++;
    try {
      const link = keeper.link() ?? (await keeper.usableLink(context.signal));
      try {
        return await this.#runOn(link, use, context);
      } catch (error) {
        return await this.#runAgain(link, use, context, error);
      }
    } catch (error) {
      throw maskError(error, keeper.spec().id, keeper.mask);
    } finally {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
  }

  /** From now on nothing new is run. Resolves when nothing runs any more, or after this time. */
  retire(clock: Clock, limitMs: number): Promise<void> {
    this.#retired = true;
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = clock.after(limitMs, resolve);
      this.#idleWaiters.push(() => {
        stop();
        resolve();
      });
    });
  }

  #runOn(link: Link, use: Use, context: UseContext): Promise<JsonObject> {
    if (use.kind !== "subscribe" && use.kind !== "unsubscribe") return runOn(link, use, context, this.#setting);
    return this.#keeper.subscriptions.change(use, context.session.id, async (uris) => {
      if (link.agreement.era === "legacy") return runOn(link, use, context, this.#setting);
      await this.#keeper.follow(uris);
      return {};
    });
  }

  async #runAgain(link: Link, use: Use, context: UseContext, error: unknown): Promise<JsonObject> {
    if (isLoginNeeded(error) && this.#keeper.link() === link) this.#keeper.lostLogin(asToolcribError(error));
    const again = await this.#linkForRetry(link, use, error);
    if (again === undefined) throw error;
    return this.#runOn(again, use, context).catch((second: unknown) => {
      if (isUnreachable(second) && !again.peer.busy) void this.#keeper.reconnect(again);
      throw second;
    });
  }

  /** The link to run a failed use on once more, if that is safe and makes sense. */
  async #linkForRetry(link: Link, use: Use, error: unknown): Promise<Link | undefined> {
    const { lists } = this.#keeper;
    const tool = use.kind === "tool" ? lists.findTool(use.name) : undefined;
    const remedy = remedyFor(error, {
      use,
      tool,
      transport: link.wire.transport,
      restart: this.#keeper.spec().restart,
    });
    const reconnected = remedy.reconnect ? this.#keeper.reconnect(link, isSessionLost(error)) : undefined;
    if (!remedy.retry) return undefined;
    await reconnected;
    return remedy.reconnect || this.#keeper.link() === link ? this.#keeper.link() : undefined;
  }
}
