import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keptBytes } from "../kept-bytes.ts";
import { type SseEvent, SseParser } from "../../../src/upstream/http/response-body.ts";

interface Parsed {
  readonly events: SseEvent[];
  readonly oversize: number[];
  readonly parser: SseParser;
}

function parse(chunks: readonly Buffer[], maxEventBytes = 1024 * 1024): Parsed {
  const events: SseEvent[] = [];
  const oversize: number[] = [];
  const parser = new SseParser({
    maxEventBytes,
    onEvent: (event) => events.push(event),
    onOversize: (bytes) => oversize.push(bytes),
  });
  for (const chunk of chunks) parser.push(chunk);
  return { events, oversize, parser };
}

const parseText = (text: string): Parsed => parse([Buffer.from(text)]);

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length));
}

const word = fc.string({ unit: fc.constantFrom("a", ":", " ", "é", "\u2028", "漢", "😀", "{", '"'), maxLength: 12 });
const sent = fc.record({
  event: fc.constantFrom("message", "endpoint", "ping"),
  data: fc.array(word, { minLength: 1, maxLength: 4 }),
  comment: word,
});

describe("SseParser", () => {
  it("reads the same events however the bytes are cut and lines end", () => {
    const ends = fc.constantFrom("\n", "\r", "\r\n");
    const property = fc.property(fc.array(sent), fc.array(fc.nat()), ends, fc.boolean(), (list, places, end, mark) => {
      const lines = list.flatMap(({ event, data, comment }, index) => [
        `:${comment}`,
        `event: ${event}`,
        ...data.map((line) => `data: ${line}`),
        `id: ${index}`,
        "",
      ]);
      const bytes = Buffer.from((mark ? "\uFEFF" : "") + lines.map((line) => line + end).join(""));
      const { events, parser } = parse(cut(bytes, places));
      expect(events).toEqual(list.map(({ event, data }) => ({ event, data: data.join("\n") })));
      expect(parser.lastEventId).toBe(list.length === 0 ? undefined : String(list.length - 1));
    });
    fc.assert(property);
  });

  it("dispatches at a CR without waiting for what follows", () => {
    expect(parseText("data: x\r\r").events).toEqual([{ event: "message", data: "x" }]);
  });

  it("takes an id from an event without data, and from one whose data is empty", () => {
    expect(parseText("id: 7\n\n")).toMatchObject({ events: [], parser: { lastEventId: "7" } });
    expect(parseText("id: 8\ndata:\n\n")).toMatchObject({ events: [{ data: "" }], parser: { lastEventId: "8" } });
  });

  it("does not take the id of an event that is not complete", () => {
    expect(parseText("id: 1\ndata: a\n\nid: 2\ndata: b\n").parser.lastEventId).toBe("1");
  });

  it("reads retry only as digits, and ignores an id with a null character", () => {
    const { parser } = parseText("retry: 10\nretry: soon\nretry: -5\nid: a\0b\n\n");
    expect([parser.retryMs, parser.lastEventId]).toEqual([10, undefined]);
  });

  it("strips one space only, and knows fields without a colon", () => {
    expect(parseText("data:  two\ndata\ndata:none\n\n").events).toEqual([{ event: "message", data: " two\n\nnone" }]);
  });

  it("forgets the name of an event that had no data", () => {
    expect(parseText("event: odd\n\ndata: x\n\n").events).toEqual([{ event: "message", data: "x" }]);
  });

  it("[spine-09e] drops an event above the limit, keeps nothing of it, and goes on", () => {
    const property = fc.property(fc.array(fc.nat()), fc.boolean(), (places, manyLines) => {
      const big = manyLines ? "data: 0123456789\n".repeat(20) : `data: ${"x".repeat(300)}\n`;
      const bytes = Buffer.from(`data: before\n\n${big}\ndata: after\n\n`);
      const { events, oversize } = parse(cut(bytes, places), 100);
      expect(events.map(({ data }) => data)).toEqual(["before", "after"]);
      expect(oversize).toHaveLength(1);
    });
    fc.assert(property);
  });

  it("[spine-09e] keeps nothing of an event above the limit while it is still coming", () => {
    const parser = new SseParser({ maxEventBytes: 1024 * 1024, onEvent: () => {}, onOversize: () => {} });
    const kept = keptBytes(() => {
      parser.push(Buffer.from("data: "));
      for (let n = 0; n < 100; n++) parser.push(Buffer.alloc(1024 * 1024, "x"));
    });
    // Of 100 MiB; the collector frees buffers a little later than it finds them.
    expect(kept).toBeLessThan(50 * 1024 * 1024);
    parser.push(Buffer.from("\n\n"));
  });

  it("does not count keep-alive comments towards an event", () => {
    const { events, oversize } = parse([Buffer.from(`${": ping\n".repeat(100)}data: x\n\n`)], 100);
    expect([events, oversize]).toEqual([[{ event: "message", data: "x" }], []]);
  });

  it("[spine-09g] needs about as much memory for a line in many pieces as for one in a single piece", () => {
    const { parser, events } = parse([Buffer.from("data: ")]);
    const piece = Buffer.from("x");
    const kept = keptBytes(() => {
      for (let n = 0; n < 300_000; n++) parser.push(piece);
    });
    expect(kept).toBeLessThan(8 * 1024 * 1024);
    parser.push(Buffer.from("\n\n"));
    expect(events[0]?.data).toHaveLength(300_000);
  });

  it("[spine-09g] a comment that is no text makes no room for a larger event", () => {
    const comment = Buffer.from(`:${"\xff".repeat(80)}\n`, "latin1");
    const large = Buffer.from(`data: ${"x".repeat(150)}\n\n`);
    const { events, oversize } = parse([comment, comment, large], 100);
    expect([events.length, oversize.length]).toEqual([0, 1]);
  });
});
