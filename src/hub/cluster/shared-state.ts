/** State that the nodes of a cluster share beyond the store: config, limits, waiting approvals and grants of callers. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { AskAnswer, AskRequest } from "../../model/decision.ts";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { CallLimits } from "../../policy/call-limits.ts";
import { SharedWindows } from "../../policy/call-windows.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Store } from "../../store/store.ts";
import type { ConfigLocation } from "../reload/config-source.ts";
import type { HubEvents } from "../hub-events.ts";
import { SharedApprovals } from "./shared-approvals.ts";
import { SharedConfig } from "./shared-config.ts";
import { SharedPrincipals } from "./shared-principals.ts";

export interface SharedStateOptions {
  readonly cluster: Cluster;
  readonly store: Store;
  readonly place: ConfigLocation & { readonly texts: Map<string, string> };
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly events: Emitter<HubEvents>;
  readonly warn: (message: string) => void;
}

interface SharingHub {
  readonly limits: CallLimits;
  readonly asked: () => readonly AskRequest[];
  readonly activity: {
    answer(
      id: string,
      answer: AskAnswer,
      by: string | null,
      door: string | null,
      caller: string | undefined,
    ): Promise<unknown>;
  };
  readonly reload: () => Promise<void>;
  /** Whether the id is that of a server which every node has. */
  readonly hasServer: (id: string) => boolean;
}

export class SharedState {
  readonly principals: SharedPrincipals;
  readonly #options: SharedStateOptions;
  readonly #stops: (() => void)[];
  #config: SharedConfig | undefined;
  #approvals: SharedApprovals | undefined;

  static async open(options: SharedStateOptions): Promise<SharedState> {
    return new SharedState(options, await SharedPrincipals.open(options.cluster, options.clock));
  }

  private constructor(options: SharedStateOptions, principals: SharedPrincipals) {
    this.#options = options;
    this.principals = principals;
    this.#stops = [
      () => principals.close(),
      options.events.on("session", ({ session, open }) => {
        if (open) principals.attach(session);
      }),
    ];
  }

  /** Questions that wait at other nodes. */
  get approvals(): SharedApprovals | undefined {
    return this.#approvals;
  }

  /** The config that applies to all nodes; a config given in code is this hub's own. */
  async begin(loaded: LoadedConfig): Promise<LoadedConfig> {
    const { file, inCode } = loaded;
    if (inCode || file === null) return loaded;
    const { store, place, clock, warn } = this.#options;
    this.#config = new SharedConfig({ store, file, place, clock, warn });
    try {
      return await this.#config.begin(loaded);
    } catch (error) {
      warn(`The config is not in sync with the other nodes: ${asToolcribError(error).message}`);
      return loaded;
    }
  }

  attach(hub: SharingHub): void {
    const { cluster, store, clock, redactor, events, warn } = this.#options;
    const onAway = (isAway: boolean): void => {
      if (isAway) warn("The store does not answer. Until it does, each node keeps to its share of the limits.");
    };
    hub.limits.share({
      windows: new SharedWindows({ clock, pool: store.limits, onAway }),
      isShared: hub.hasServer,
      nodes: () => cluster.nodes().length,
    });
    const approvals = (this.#approvals = new SharedApprovals({
      cluster,
      events,
      own: hub.asked,
      answerOwn: (id, answer, { user, door, caller }) => hub.activity.answer(id, answer, user, door, caller),
      mask: redactor.maskAll,
    }));
    this.#stops.push(() => approvals.close());
    const stopConfig = this.#config?.follow({
      reload: hub.reload,
      onReload: (listener) => events.on("reload", listener),
    });
    if (stopConfig !== undefined) this.#stops.push(stopConfig);
  }

  /** Resolves when nothing is in progress. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#config?.settled();
  }
}
