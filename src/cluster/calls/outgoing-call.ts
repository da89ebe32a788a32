/** One call of this node, until it is settled. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { CallReply, CallRequest } from "../cluster.ts";
import { cancelled, errorThatCame, errorToSend, inDoubt, notSent } from "./call-errors.ts";
import { MessageReceiver } from "./message-receiver.ts";
import { MessageSender } from "./message-sender.ts";
import { encodePacket, Kind, type Message, type Packet } from "./packets.ts";

export interface OutgoingCallDeps {
  /** To the node that handles it. */
  sendTo(node: string, packet: Uint8Array): void;
  readonly maxPayload: number;
  /** The request itself, if it was too large to be sent along. */
  readonly upload: Message | undefined;
  onAccepted(node: string): void;
  onSettled(): void;
}

export class OutgoingCall {
  readonly result: Promise<CallReply>;
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
  #resolve: (reply: CallReply) => void = () => {};
  #reject: (error: ToolcribError) => void = () => {};

  constructor(request: CallRequest, deps: OutgoingCallDeps) {
    this.#request = request;
    this.#deps = deps;
    this.#begun = deps.upload === undefined;
    this.#receiver = new MessageReceiver(
      (packet) => this.#send(packet),
      (message) => this.#take(message),
    );
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    request.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  take(packet: Packet): void {
    try {
      if (packet.kind === Kind.ack) this.#sender?.acknowledge(packet.number);
      else if (packet.kind === Kind.abort) this.#end(errorOf(packet.payload));
      else this.#receiver.take(packet);
    } catch (error) {
      this.#giveUp(asToolcribError(error));
    }
  }

  /** The link or the node that had it is away. */
  doubt(why: string): void {
    this.fail(this.#begun ? inDoubt(why) : notSent(why));
  }

  /** Ends it from this side; the handler is told to stop. */
  fail(error: ToolcribError): void {
    if (this.#settled) return;
    this.#send(encodePacket(Kind.cancel));
    this.#end(error);
  }

  #giveUp(error: ToolcribError): void {
    this.fail(error.code === "server_unavailable" ? inDoubt(error.message) : error);
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
        return this.#end(body === undefined ? { head: objectIn(head) } : { head: objectIn(head), body });
      case "error":
        return this.#end(errorThatCame(head["error"]));
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
      answer = { type: "answer", id, error: errorToSend(error) };
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
    if (outcome instanceof ToolcribError) this.#reject(outcome);
    else this.#resolve(outcome);
  }
}

function objectIn(head: JsonObject): JsonObject {
  return isJsonObject(head["value"]) ? head["value"] : {};
}

function errorOf(payload: Uint8Array): ToolcribError {
  const error: unknown = JSON.parse(Buffer.from(payload).toString("utf8"));
  return errorThatCame(error);
}
