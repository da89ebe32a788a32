/** The calls that other nodes make to this one. */
import type { Clock } from "../../model/clock.ts";
import type { ToolcribError } from "../../model/errors.ts";
import type { CallHandler } from "../cluster.ts";
import type { LinkMessage, Listening, NatsLink } from "../nats-link.ts";
import type { NodeList } from "../node-list.ts";
import { Pulse } from "../pulse.ts";
import { inDoubt, notSent } from "./call-errors.ts";
import { decodeMessage, decodePacket, encodeMessage, encodePacket, Kind, type Message } from "./packets.ts";
import { RunningCall } from "./running-call.ts";
import type { Subjects } from "./subjects.ts";

interface IncomingCallsDeps {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly nodes: Pick<NodeList, "isAlive" | "isGone">;
}

/** Of several nodes that serve one address, one gets the call. */
const QUEUE = "handlers";

export class IncomingCalls {
  readonly #deps: IncomingCallsDeps;
  /** By caller and number. */
  readonly #running = new Map<string, { readonly call: RunningCall; readonly reply: string }>();
  readonly #inbox: Listening;
  readonly #epochInbox: Listening;
  /** The present epoch of each node, as far as it has said so. */
  readonly #epochs = new Map<string, number>();
  readonly #served = new Set<() => Promise<void>>();
  /** Callers that were not told yet that their call has ended. */
  #untold: string[] = [];
  readonly #pulse: Pulse;
  #distrusts = false;
  #closed = false;

  constructor(deps: IncomingCallsDeps) {
    this.#deps = deps;
    const { link, subjects, nodeId } = deps;
    const prefix = subjects.control(nodeId, "", "").length - 1;
    this.#inbox = link.subscribe(subjects.control(nodeId, "*", "*"), ({ subject, data }) => {
      const packet = decodePacket(data);
      if (packet !== undefined) this.#running.get(subject.slice(prefix))?.call.take(packet);
    });
    this.#pulse = new Pulse(deps.clock, deps.leaseMs / 8, (pausedMs) => this.#awake(pausedMs));
    this.#epochInbox = link.subscribe(subjects.epochs, ({ data }) => {
      const { head } = decodeMessage(data);
      this.#newEpoch(String(head["node"]), Number(head["epoch"]));
    });
  }

  serve(address: string, handler: CallHandler): () => void {
    const { link, subjects } = this.#deps;
    let ended = false;
    const requests = link.subscribe(
      subjects.call(address),
      (message) => this.#take(message, ended ? undefined : handler),
      QUEUE,
    );
    const end = async (): Promise<void> => {
      if (ended) return;
      ended = true;
      this.#served.delete(end);
      // Requests that are on their way here are still refused in words, because nobody else will answer them.
      await requests.drain().catch(() => {});
    };
    this.#served.add(end);
    return () => void end();
  }

  nodeGone(node: string): void {
    this.#epochs.delete(node);
    // If it was only paused, it has to learn that nobody works for it any more.
    for (const { call } of this.#running.values()) {
      if (call.from === node) call.refuse(inDoubt("The node that called counts as gone."));
    }
  }

  linkDown(): void {
    for (const { call, reply } of this.#running.values()) {
      this.#untold.push(reply);
      call.abort();
    }
  }

  linkUp(): void {
    const { link, subjects, nodeId } = this.#deps;
    link.publish(subjects.epochs, encodeMessage({ node: nodeId, epoch: link.epoch }));
    for (const reply of this.#untold) this.#refuse(reply, inDoubt("The node that had the call was cut off."));
    this.#untold = [];
  }

  /** No new ones; those that run are ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#served].map((end) => end()));
    for (const { call } of this.#running.values())
      call.refuse(inDoubt("The node that had the call leaves the cluster."));
    this.#pulse.stop();
    this.#inbox.unsubscribe();
    this.#epochInbox.unsubscribe();
  }

  #take(request: LinkMessage, handler: CallHandler | undefined): void {
    const { link, nodeId, nodes, clock, leaseMs } = this.#deps;
    const { reply } = request;
    if (reply === undefined || reply === "") return;
    if (handler === undefined || this.#closed)
      return this.#refuse(reply, notSent("The node does not serve it any more."));
    let message: Message;
    try {
      message = decodeMessage(request.data);
    } catch {
      return;
    }
    this.#awake(this.#pulse.pausedMs);
    if (this.#distrusts) return this.#refuse(reply, notSent("The node has just stood still."));
    const from = String(message.head["from"]);
    if (nodes.isGone(from)) return this.#refuse(reply, notSent("The node that calls counts as gone."));
    const key = `${from}.${String(message.head["call"])}`;
    // Its caller has long given up.
    if (Number(message.head["epoch"]) < (this.#epochs.get(from) ?? 0) || this.#running.has(key)) return;
    const call = new RunningCall({
      from,
      nodeId,
      handler,
      maxPayload: link.maxPayload,
      send: (packet) => void link.publish(reply, packet),
      onEnd: () => this.#running.delete(key),
    });
    this.#running.set(key, { call, reply });
    // One that is not in the list yet could die before it ever is.
    if (!nodes.isAlive(from)) clock.after(leaseMs, () => nodes.isAlive(from) || this.nodeGone(from));
    if (message.head["large"] !== true) void call.run(message);
  }

  /**
   * What waited while this process was paused may have been given up long ago, so none of it is begun: until NATS has answered
   * a question that was asked after the pause, everything that arrives is refused.
   */
  #awake(pausedMs: number): void {
    if (this.#distrusts || pausedMs < this.#deps.leaseMs) return;
    this.#distrusts = true;
    const trust = (): void => void (this.#distrusts = false);
    this.#deps.link.flush().then(trust, trust);
  }

  #refuse(reply: string, error: ToolcribError): void {
    this.#deps.link.publish(reply, encodePacket(Kind.abort, 0, Buffer.from(JSON.stringify(error.toObject()))));
  }

  #newEpoch(node: string, epoch: number): void {
    this.#epochs.set(node, epoch);
    for (const { call } of this.#running.values()) if (call.from === node) call.abort();
  }
}
