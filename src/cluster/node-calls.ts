/** The calls between nodes: those that this node makes, with one inbox for all of them, and those that others make to it. */
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type CallParts,
  cancelled,
  decodeAbort,
  decodeMessage,
  decodePacket,
  encodeAbort,
  encodeMessage,
  encodePacket,
  MAX_MESSAGE_BYTES,
  maxPartBytes,
  type Message,
  MessageReceiver,
  MessageSender,
  messageTooLarge,
  notSent,
  outcomeUnknown,
  type Packet,
  PacketKind,
} from "./call-messages.ts";
import {
  type CallHandler,
  type CallReply,
  type CallRequest,
  decodeError,
  encodeError,
  type IncomingCall,
} from "./cluster.ts";
import type { LinkMessage, LinkSubscription } from "./nats-link.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

/** For this many leases a call that no node accepted is remembered. */
const FORGET_LEASES = 10;

export class OutgoingCalls {
  readonly #deps: CallParts;
  readonly #calls = new Map<string, OutgoingCall>();
  /** Calls that ended before a node accepted them: a node that does so later is notified that they are over. */
  readonly #over = new Set<string>();
  readonly #inbox: LinkSubscription;
  readonly #epochInbox: LinkSubscription;
  #count = 0;
  #closed = false;

  constructor(deps: CallParts) {
    this.#deps = deps;
    const prefix = deps.subjects.reply(deps.nodeId, "");
    this.#inbox = deps.link.subscribe(deps.subjects.reply(deps.nodeId, "*"), (message) => {
      const id = message.subject.slice(prefix.length);
      if (message.status !== undefined) {
        const call = this.#calls.get(id);
        // Not signed, as it comes from NATS: one about a call that a node has taken is a lie.
        if (call?.node === undefined) call?.fail(notSent("No node answers at that address."));
        this.#over.delete(id);
        return;
      }
      const packet = decodePacket(message.data);
      if (packet === undefined) return;
      this.#calls.get(id)?.take(packet);
      if (this.#over.has(id)) this.#takenLate(id, packet);
    });
    this.#epochInbox = deps.link.subscribe(deps.subjects.epochs, ({ data }) => {
      // What it sent last may be lost, also the reply to a call that has ended there.
      this.#doubtAll(String(decodeMessage(data).head["node"]), "The node that had the call was cut off.");
    });
  }

  async call(address: string, request: CallRequest): Promise<CallReply> {
    const { link, subjects, nodeId } = this.#deps;
    if (request.signal?.aborted === true) throw cancelled();
    if (this.#closed) throw notSent("This node leaves the cluster.");
    if (!link.isUp) throw notSent("NATS cannot be reached.");
    const id = String(++this.#count);
    const envelope = { call: id, from: nodeId, epoch: link.epoch };
    const most = maxPartBytes(link.maxPayload);
    const bodyBytes = request.body?.length ?? 0;
    if (bodyBytes > MAX_MESSAGE_BYTES) throw messageTooLarge();
    const whole = bodyBytes > most ? undefined : encodeMessage({ ...envelope, value: request.head }, request.body);
    const large = whole === undefined || whole.length > most;
    const bytes = large ? encodeMessage({ ...envelope, large: true }) : whole;
    const call = this.#make(id, request, large);
    this.#calls.set(id, call);
    if (!link.publish(subjects.call(address), bytes, subjects.reply(nodeId, id))) {
      call.fail(notSent("NATS cannot be reached."));
    }
    return await call.result;
  }

  /** A node is gone. */
  nodeGone(node: string): void {
    this.#doubtAll(node, "The node that had the call has gone.");
  }

  linkDown(): void {
    for (const call of this.#calls.values()) call.doubt("The connection to NATS was lost.");
    this.#over.clear();
  }

  close(): void {
    this.#closed = true;
    for (const call of this.#calls.values()) call.doubt("This node leaves the cluster.");
    this.#over.clear();
    this.#inbox.unsubscribe();
    this.#epochInbox.unsubscribe();
  }

  #doubtAll(node: string, why: string): void {
    for (const call of this.#calls.values()) if (call.node === node) call.doubt(why);
  }

  /** Only the number is kept, not what the call carried. */
  #remember(id: string): void {
    const { clock, leaseMs } = this.#deps;
    this.#over.add(id);
    clock.after(FORGET_LEASES * leaseMs, () => this.#over.delete(id));
  }

  #takenLate(id: string, { kind, payload }: Packet): void {
    if (kind !== PacketKind.last) return;
    const { link, subjects, nodeId } = this.#deps;
    const { type, node } = decodeMessage(payload).head;
    if (type !== "accepted") return;
    this.#over.delete(id);
    link.publish(subjects.control(String(node), nodeId, id), encodePacket(PacketKind.cancel));
  }

  #make(id: string, request: CallRequest, large: boolean): OutgoingCall {
    const { link, subjects, nodeId, clock, leaseMs, nodes } = this.#deps;
    const stopWaiting = clock.after(leaseMs, () => call.doubt("No node took the call in time."));
    const call = new OutgoingCall(request, {
      sendTo: (node, packet) => void link.publish(subjects.control(node, nodeId, id), packet),
      maxPayload: link.maxPayload,
      upload: large ? { head: { value: request.head }, body: request.body } : undefined,
      onAccepted: (node) => {
        stopWaiting();
        // One that is not in the list yet could die before it ever is.
        if (!nodes.isAlive(node)) clock.after(leaseMs, () => nodes.isAlive(node) || this.nodeGone(node));
      },
      onSettled: () => {
        stopWaiting();
        this.#calls.delete(id);
        if (call.node === undefined) this.#remember(id);
      },
    });
    return call;
  }
}

interface OutgoingCallDeps {
  /** To the node that handles it. */
  sendTo(node: string, packet: Uint8Array): void;
  readonly maxPayload: number;
  /** The request itself, if it was too large to be sent along. */
  readonly upload: Message | undefined;
  onAccepted(node: string): void;
  onSettled(): void;
}

/** One call of this node, until it is settled. */
class OutgoingCall {
  readonly #outcome = Promise.withResolvers<CallReply>();
  readonly result = this.#outcome.promise;
  /** The node that handles it. */
  node: string | undefined;
  readonly #request: CallRequest;
  readonly #deps: OutgoingCallDeps;
  readonly #receiver: MessageReceiver;
  readonly #questions = new Map<number, AbortController>();
  readonly #onAbort = (): void => this.fail(cancelled());
  #sender: MessageSender | undefined;
  /** Whether a handler can have begun: a large request is begun with only when its last part is there. */
  #begun: boolean;
  #settled = false;

  constructor(request: CallRequest, deps: OutgoingCallDeps) {
    this.#request = request;
    this.#deps = deps;
    this.#begun = deps.upload === undefined;
    this.#receiver = new MessageReceiver(
      (packet) => this.#send(packet),
      (message) => this.#take(message),
    );
    request.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  take(packet: Packet): void {
    try {
      if (packet.kind === PacketKind.ack) this.#sender?.acknowledge(packet.number);
      else if (packet.kind === PacketKind.abort) this.#end(decodeAbort(packet.payload));
      else this.#receiver.take(packet);
    } catch (error) {
      this.#giveUp(asToolcribError(error));
    }
  }

  /** The link or the node that had it is away. */
  doubt(why: string): void {
    this.fail(this.#begun ? outcomeUnknown(why) : notSent(why));
  }

  /** Ends it from this side; the handler is stopped. */
  fail(error: ToolcribError): void {
    if (this.#settled) return;
    this.#send(encodePacket(PacketKind.cancel));
    this.#end(error);
  }

  #giveUp(error: ToolcribError): void {
    this.fail(error.code === "server_unavailable" ? outcomeUnknown(error.message) : error);
  }

  #send(packet: Uint8Array): void {
    if (this.node !== undefined) this.#deps.sendTo(this.node, packet);
  }

  #take({ head, body }: Message): void {
    if (this.#settled) return;
    switch (head["type"]) {
      case "accepted":
        return this.#accepted(String(head["node"]));
      case "event":
        return this.#request.onEvent?.(objectIn(head), body);
      case "question":
        return void this.#answer(Number(head["id"]), objectIn(head));
      case "drop":
        return this.#questions.get(Number(head["id"]))?.abort();
      case "reply":
        return this.#end({ head: objectIn(head), body });
      case "error":
        return this.#end(decodeError(head["error"]));
    }
  }

  #accepted(node: string): void {
    this.node = node;
    this.#deps.onAccepted(node);
    this.#sender = new MessageSender((packet) => this.#deps.sendTo(node, packet), this.#deps.maxPayload);
    const { upload } = this.#deps;
    if (upload === undefined) return;
    this.#sender.send(upload.head, upload.body).then(
      () => (this.#begun = true),
      (error: unknown) => this.fail(asToolcribError(error)),
    );
  }

  async #answer(id: number, question: JsonObject): Promise<void> {
    const stop = new AbortController();
    this.#questions.set(id, stop);
    let answer: JsonObject;
    try {
      if (this.#request.onQuestion === undefined) {
        throw new ToolcribError("denied", "The caller answers no questions.");
      }
      answer = { type: "answer", id, value: await this.#request.onQuestion(question, stop.signal) };
    } catch (error) {
      answer = { type: "answer", id, error: encodeError(error) };
    }
    this.#questions.delete(id);
    // It fails only if the call has ended meanwhile.
    await this.#sender?.send(answer).catch(() => {});
  }

  #end(outcome: CallReply | ToolcribError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
    for (const question of this.#questions.values()) question.abort();
    this.#sender?.close();
    this.#deps.onSettled();
    if (outcome instanceof ToolcribError) this.#outcome.reject(outcome);
    else this.#outcome.resolve(outcome);
  }
}

function objectIn(head: JsonObject): JsonObject {
  return isJsonObject(head["value"]) ? head["value"] : {};
}

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
      head: objectIn(head),
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
