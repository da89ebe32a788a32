/** One call of another node that is handled here. */
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { CallHandler, IncomingCall } from "../cluster.ts";
import { cancelled, errorThatCame, errorToSend } from "./call-errors.ts";
import { MessageReceiver } from "./message-receiver.ts";
import { MessageSender } from "./message-sender.ts";
import { encodePacket, Kind, type Message, type Packet } from "./packets.ts";

export interface RunningCallDeps {
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

export class RunningCall {
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
      if (packet.kind === Kind.ack) this.#sender.acknowledge(packet.number);
      else if (packet.kind === Kind.cancel) this.abort();
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

  /** Ends it from this side, and says so to the caller. */
  refuse(error: ToolcribError): void {
    if (this.#stop.signal.aborted) return;
    this.#deps.send(encodePacket(Kind.abort, 0, Buffer.from(JSON.stringify(error.toObject()))));
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
      await this.#sender.send({ type: "error", error: errorToSend(error) }).catch(() => {});
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
    else question?.reject(errorThatCame(head["error"]));
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
