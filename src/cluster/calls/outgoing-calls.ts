/** The calls that this node makes: one inbox for all of them. */
import type { Clock } from "../../model/clock.ts";
import type { CallReply, CallRequest } from "../cluster.ts";
import type { Listening, NatsLink } from "../nats-link.ts";
import type { NodeList } from "../node-list.ts";
import { cancelled, notSent } from "./call-errors.ts";
import { MESSAGE_LIMIT, partBytes, tooLarge } from "./message-sender.ts";
import { OutgoingCall } from "./outgoing-call.ts";
import { decodeMessage, decodePacket, encodeMessage, encodePacket, Kind, type Packet } from "./packets.ts";
import type { Subjects } from "./subjects.ts";

interface OutgoingCallsDeps {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly nodes: Pick<NodeList, "isAlive">;
}

/** For so many leases a call that nobody took is remembered. */
const FORGET_LEASES = 10;

export class OutgoingCalls {
  readonly #deps: OutgoingCallsDeps;
  readonly #calls = new Map<string, OutgoingCall>();
  /** Calls that ended before anybody took them: whoever does after all is told that they are over. */
  readonly #over = new Set<string>();
  readonly #inbox: Listening;
  readonly #epochInbox: Listening;
  #count = 0;
  #closed = false;

  constructor(deps: OutgoingCallsDeps) {
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
      // What it sent last may be lost, also the reply to a call that has ended there and that it tells nobody about.
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
    const most = partBytes(link.maxPayload);
    const bodyBytes = request.body?.length ?? 0;
    if (bodyBytes > MESSAGE_LIMIT) throw tooLarge();
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
    if (kind !== Kind.last) return;
    const { link, subjects, nodeId } = this.#deps;
    const { type, node } = decodeMessage(payload).head;
    if (type !== "accepted") return;
    this.#over.delete(id);
    link.publish(subjects.control(String(node), nodeId, id), encodePacket(Kind.cancel));
  }

  #make(id: string, request: CallRequest, large: boolean): OutgoingCall {
    const { link, subjects, nodeId, clock, leaseMs, nodes } = this.#deps;
    const stopWaiting = clock.after(leaseMs, () => call.doubt("Nobody took the call in time."));
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
