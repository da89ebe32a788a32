/** The calls that this node makes: one inbox for all of them. */
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type CallParts,
  cancelled,
  decodeAbort,
  decodeMessage,
  decodePacket,
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
import { type CallReply, type CallRequest, decodeError, encodeError } from "./cluster.ts";
import type { LinkSubscription } from "./nats-link.ts";

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
