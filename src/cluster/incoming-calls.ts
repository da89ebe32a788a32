/** The calls that other nodes make to this one. */
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type CallParts,
  cancelled,
  decodeMessage,
  decodePacket,
  encodeAbort,
  encodeMessage,
  type Message,
  MessageReceiver,
  MessageSender,
  notSent,
  outcomeUnknown,
  type Packet,
  PacketKind,
} from "./call-messages.ts";
import { type CallHandler, decodeError, encodeError, type IncomingCall } from "./cluster.ts";
import type { LinkMessage, LinkSubscription } from "./nats-link.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

/** Of several nodes that serve one address, one gets the call. */
const QUEUE = "handlers";

export class IncomingCalls {
  readonly #deps: CallParts;
  /** By caller and number. */
  readonly #running = new Map<string, { readonly call: RunningCall; readonly reply: string }>();
  readonly #inbox: LinkSubscription;
  readonly #epochInbox: LinkSubscription;
  /** The present epoch of each node, as far as it has said so. */
  readonly #epochs = new Map<string, number>();
  readonly #served = new Set<() => Promise<void>>();
  /** Callers that were not notified yet that their call has ended. */
  #untold: string[] = [];
  readonly #pulse: PauseAwareTimer;
  #distrusts = false;
  #closed = false;

  constructor(deps: CallParts) {
    this.#deps = deps;
    const { link, subjects, nodeId } = deps;
    const prefix = subjects.control(nodeId, "", "").length - 1;
    this.#inbox = link.subscribe(subjects.control(nodeId, "*", "*"), ({ subject, data }) => {
      const packet = decodePacket(data);
      if (packet !== undefined) this.#running.get(subject.slice(prefix))?.call.take(packet);
    });
    this.#pulse = new PauseAwareTimer(deps.clock, deps.leaseMs / 8, (pausedMs) => this.#awake(pausedMs));
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
      // Requests that are on their way here still get a refusal, because no other node will answer them.
      await requests.drain().catch(() => {});
    };
    this.#served.add(end);
    return () => void end();
  }

  nodeGone(node: string): void {
    this.#epochs.delete(node);
    // If it was only paused, it has to learn that its calls were ended.
    for (const { call } of this.#running.values()) {
      if (call.from === node) call.refuse(outcomeUnknown("The node that called counts as gone."));
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
    for (const reply of this.#untold) this.#refuse(reply, outcomeUnknown("The node that had the call was cut off."));
    this.#untold = [];
  }

  /** No new ones; those that run are ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#served].map((end) => end()));
    for (const { call } of this.#running.values())
      call.refuse(outcomeUnknown("The node that had the call leaves the cluster."));
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
   * Requests that waited while this process was paused may have been given up long ago, so none is begun: until NATS has answered
   * a question that was asked after the pause, everything that arrives is refused.
   */
  #awake(pausedMs: number): void {
    if (this.#distrusts || pausedMs < this.#deps.leaseMs) return;
    this.#distrusts = true;
    const trust = (): void => void (this.#distrusts = false);
    this.#deps.link.flush().then(trust, trust);
  }

  #refuse(reply: string, error: ToolcribError): void {
    this.#deps.link.publish(reply, encodeAbort(error));
  }

  #newEpoch(node: string, epoch: number): void {
    this.#epochs.set(node, epoch);
    for (const { call } of this.#running.values()) if (call.from === node) call.abort();
  }
}

interface RunningCallDeps {
  readonly from: string;
  readonly nodeId: string;
  readonly handler: CallHandler;
  readonly maxPayload: number;
  /** To the node that called. */
  send(packet: Uint8Array): void;
  onEnd(): void;
}

interface Question {
  readonly resolve: (answer: JsonObject) => void;
  readonly reject: (error: ToolcribError) => void;
}

/** One call of another node that is handled here. */
class RunningCall {
  readonly from: string;
  readonly #deps: RunningCallDeps;
  readonly #stop = new AbortController();
  readonly #sender: MessageSender;
  readonly #receiver: MessageReceiver;
  readonly #questions = new Map<number, Question>();
  #questionCount = 0;
  #begun = false;

  constructor(deps: RunningCallDeps) {
    this.from = deps.from;
    this.#deps = deps;
    this.#sender = new MessageSender((packet) => deps.send(packet), deps.maxPayload);
    this.#receiver = new MessageReceiver(
      (packet) => deps.send(packet),
      (message) => this.#take(message),
    );
    void this.#sender.send({ type: "accepted", node: deps.nodeId }).catch(() => {});
  }

  take(packet: Packet): void {
    try {
      if (packet.kind === PacketKind.ack) this.#sender.acknowledge(packet.number);
      else if (packet.kind === PacketKind.cancel) this.abort();
      else this.#receiver.take(packet);
    } catch (error) {
      this.refuse(asToolcribError(error));
    }
  }

  /** The caller is not there any more, or cannot be reached. */
  abort(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(cancelled());
    this.#sender.close();
    for (const { reject } of this.#questions.values()) reject(cancelled());
    this.#questions.clear();
    this.#deps.onEnd();
  }

  /** Ends it from this side and notifies the caller. */
  refuse(error: ToolcribError): void {
    if (this.#stop.signal.aborted) return;
    this.#deps.send(encodeAbort(error));
    this.abort();
  }

  async run(request: Message): Promise<void> {
    // A call is begun once, whatever arrives.
    if (this.#begun) return;
    this.#begun = true;
    try {
      const reply = await this.#deps.handler(this.#asSeen(request));
      await this.#sender.send({ type: "reply", value: reply.head }, reply.body);
    } catch (error) {
      // It fails only if the caller is not there any more.
      await this.#sender.send({ type: "error", error: encodeError(error) }).catch(() => {});
    }
    this.#deps.onEnd();
  }

  #asSeen({ head, body }: Message): IncomingCall {
    return {
      head: isJsonObject(head["value"]) ? head["value"] : {},
      body,
      from: this.from,
      signal: this.#stop.signal,
      emit: (event, eventBody) => this.#sender.send({ type: "event", value: event }, eventBody),
      ask: (question, signal) => this.#ask(question, signal),
    };
  }

  #take(message: Message): void {
    const { head } = message;
    if (head["type"] !== "answer") return void this.run(message);
    const id = Number(head["id"]);
    const question = this.#questions.get(id);
    this.#questions.delete(id);
    if (isJsonObject(head["value"])) question?.resolve(head["value"]);
    else question?.reject(decodeError(head["error"]));
  }

  async #ask(question: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    if (this.#stop.signal.aborted || signal.aborted) throw cancelled();
    const id = ++this.#questionCount;
    const answer = new Promise<JsonObject>((resolve, reject) => this.#questions.set(id, { resolve, reject }));
    const drop = (): void => {
      this.#questions.get(id)?.reject(cancelled());
      this.#questions.delete(id);
      void this.#sender.send({ type: "drop", id }).catch(() => {});
    };
    signal.addEventListener("abort", drop, { once: true });
    try {
      // The answer may be refused before the question is out; it is awaited below all the same.
      answer.catch(() => {});
      await this.#sender.send({ type: "question", id, value: question });
      return await answer;
    } finally {
      signal.removeEventListener("abort", drop);
    }
  }
}
