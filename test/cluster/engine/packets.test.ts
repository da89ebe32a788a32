import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  decodeMessage,
  decodePacket,
  encodeMessage,
  encodePacket,
  MAX_MESSAGE_BYTES,
  type Message,
  MessageReceiver,
  MessageSender,
  type Packet,
  PacketKind,
} from "../../../src/cluster/call-messages.ts";
import { ToolcribError } from "../../../src/model/errors.ts";

const KIB = 1024;

function read(bytes: Uint8Array): Packet {
  const packet = decodePacket(bytes);
  if (packet === undefined) throw new Error("no packet");
  return packet;
}

describe("messages of a call", () => {
  it("are the same after the way, whatever their size and where the parts begin", () => {
    const taken: Message[] = [];
    const receiver = new MessageReceiver(
      () => {},
      (message) => taken.push(message),
    );
    const sender = new MessageSender((packet) => receiver.take(read(packet)), 2 * KIB);
    const sizes = [undefined, 0, 1, 900, 1000, 1010, 1015, 1019, 1024, 2048, 5000];
    const bodies = sizes.map((size) => (size === undefined ? undefined : randomBytes(size)));
    for (const [at, body] of bodies.entries()) void sender.send({ at, text: "é".repeat(at * 100) }, body);
    expect(taken.map(({ head }) => head)).toEqual(bodies.map((_, at) => ({ at, text: "é".repeat(at * 100) })));
    for (const [at, body] of bodies.entries()) {
      const found = taken[at]?.body;
      expect(found === undefined).toBe(body === undefined);
      if (found !== undefined && body !== undefined) expect(Buffer.compare(found, body)).toBe(0);
    }
  });

  it("no more is under way than was agreed, and each acknowledgement lets more go", async () => {
    const sent: Packet[] = [];
    const sender = new MessageSender((packet) => sent.push(read(packet)), KIB * KIB);
    let done = false;
    const sending = sender.send({}, Buffer.alloc(3 * KIB * KIB)).then(() => (done = true));
    const bytes = (): number => sent.reduce((sum, { payload }) => sum + payload.length, 0);
    expect(bytes()).toBe(KIB * KIB);
    sender.acknowledge(sent[1]?.number ?? -1);
    expect(bytes()).toBe(1.25 * KIB * KIB);
    while (sent.at(-1)?.kind !== PacketKind.last) sender.acknowledge(sent.at(-1)?.number ?? -1);
    await sending;
    expect(done).toBe(true);
    expect(sent.map(({ number }) => number)).toEqual([...sent.keys()]);
    const many = Array.from({ length: 300 }, (_, at) => sender.send({ at }));
    sender.close();
    const outcomes = await Promise.allSettled(many);
    expect(outcomes.filter(({ status }) => status === "rejected").length).toBeGreaterThan(0);
    await expect(sender.send({})).rejects.toMatchObject({ code: "cancelled" });
  });

  it("a receiver acknowledges what it took, and says when a part is missing or it is too much", () => {
    const acknowledged: number[] = [];
    const receiver = new MessageReceiver(
      (packet) => acknowledged.push(read(packet).number),
      () => {},
    );
    const part = { kind: PacketKind.part, payload: Buffer.alloc(128 * KIB) };
    for (let number = 0; number < 4; number++) receiver.take({ ...part, number });
    expect(acknowledged).toEqual([1, 3]);
    expect(() => receiver.take({ ...part, number: 5 })).toThrow(ToolcribError);
    const endless = new MessageReceiver(
      () => {},
      () => {},
    );
    const large = { kind: PacketKind.part, payload: Buffer.alloc(MAX_MESSAGE_BYTES / 2) };
    endless.take({ ...large, number: 0 });
    endless.take({ ...large, number: 1 });
    expect(() => endless.take({ ...large, number: 2 })).toThrow(/More than 128 MiB/);
  });

  it("what is no packet or no message is not taken for one", () => {
    expect(decodePacket(Buffer.from("abc"))).toBeUndefined();
    expect(read(encodePacket(PacketKind.ack, 4_000_000_000))).toMatchObject({
      kind: PacketKind.ack,
      number: 4_000_000_000,
    });
    expect(decodeMessage(encodeMessage({ a: [1] }, Buffer.alloc(0)))).toEqual({
      head: { a: [1] },
      body: expect.any(Uint8Array),
    });
    expect(() => decodeMessage(Buffer.from("no message at all"))).toThrow(/JSON/);
  });
});
