/** An OTLP endpoint over HTTP that reads what it gets, as protobuf or JSON, by the tables of OpenTelemetry's own .proto files. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { onTestFinished } from "vitest";

export type Attributes = Readonly<Record<string, unknown>>;

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly statusCode: number;
  readonly attributes: Attributes;
  readonly resource: Attributes;
  readonly scope: string;
}

export interface ReceivedPoint {
  readonly metric: string;
  readonly unit: string;
  readonly count: number;
  readonly sum: number;
  readonly bounds: readonly number[];
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

export const SPAN_SERVER = 2;
export const SPAN_CLIENT = 3;
export const STATUS_ERROR = 2;

export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly points: ReceivedPoint[] = [];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];
  /** Takes requests and does not answer. */
  isStuck = false;
  /** Answers every request with this. */
  status = 200;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      void buffer(request).then((sent) => {
        const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
        const path = request.url ?? "";
        this.requests.push({ path, headers: request.headers, body });
        if (this.isStuck) return;
        if (this.status === 200) this.#take(path, request.headers["content-type"] ?? "", body);
        response.writeHead(this.status, { "Content-Type": request.headers["content-type"] ?? "text/plain" });
        response.end(request.headers["content-type"] === "application/json" ? "{}" : "");
      });
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((done) => receiver.#server.listen(0, "127.0.0.1", done));
    onTestFinished(async () => {
      receiver.#server.closeAllConnections();
      await new Promise((done) => receiver.#server.close(done));
    });
    return receiver;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  #take(path: string, type: string, body: Buffer): void {
    const message = path.endsWith("/v1/traces") ? TRACES : METRICS;
    const read = type === "application/json" ? fromJson(JSON.parse(body.toString())) : decode(message, body);
    for (const group of list(read["resourceSpans"])) this.#takeSpans(group);
    for (const group of list(read["resourceMetrics"])) this.#takePoints(group);
  }

  #takeSpans(group: Message): void {
    const resource = attributesOf(part(group["resource"]));
    for (const scoped of list(group["scopeSpans"])) {
      for (const span of list(scoped["spans"])) {
        this.spans.push({
          name: String(span["name"]),
          kind: Number(span["kind"]),
          traceId: String(span["traceId"]),
          spanId: String(span["spanId"]),
          parentSpanId: "parentSpanId" in span ? String(span["parentSpanId"]) : "",
          statusCode: Number(part(span["status"])["code"] ?? 0),
          attributes: attributesOf(span),
          resource,
          scope: String(part(scoped["scope"])["name"]),
        });
      }
    }
  }

  #takePoints(group: Message): void {
    const resource = attributesOf(part(group["resource"]));
    for (const scoped of list(group["scopeMetrics"])) {
      for (const metric of list(scoped["metrics"])) {
        for (const point of list(part(metric["histogram"])["dataPoints"])) {
          this.points.push({
            metric: String(metric["name"]),
            unit: String(metric["unit"]),
            count: Number(point["count"]),
            sum: Number(point["sum"]),
            bounds: point["explicitBounds"] as number[],
            attributes: attributesOf(point),
            resource,
          });
        }
      }
    }
  }
}

type Message = Readonly<Record<string, unknown>>;

type FieldType = "string" | "id" | "varint" | "fixed64" | "double" | "doubles" | "fixed64s" | MessageType;

interface MessageType {
  readonly [field: number]: readonly [name: string, type: FieldType, isRepeated?: true];
}

// Fields by their numbers, in opentelemetry/proto/common/v1, resource/v1, trace/v1, metrics/v1.
const VALUE: MessageType = {
  1: ["stringValue", "string"],
  2: ["boolValue", "varint"],
  3: ["intValue", "varint"],
  4: ["doubleValue", "double"],
};
const KEY_VALUE: MessageType = { 1: ["key", "string"], 2: ["value", VALUE] };
const RESOURCE: MessageType = { 1: ["attributes", KEY_VALUE, true] };
const SCOPE: MessageType = { 1: ["name", "string"], 2: ["version", "string"] };
const STATUS: MessageType = { 2: ["message", "string"], 3: ["code", "varint"] };
const SPAN: MessageType = {
  1: ["traceId", "id"],
  2: ["spanId", "id"],
  4: ["parentSpanId", "id"],
  5: ["name", "string"],
  6: ["kind", "varint"],
  9: ["attributes", KEY_VALUE, true],
  15: ["status", STATUS],
};
const POINT: MessageType = {
  4: ["count", "fixed64"],
  5: ["sum", "double"],
  6: ["bucketCounts", "fixed64s"],
  7: ["explicitBounds", "doubles"],
  9: ["attributes", KEY_VALUE, true],
};
const HISTOGRAM: MessageType = { 1: ["dataPoints", POINT, true] };
const METRIC: MessageType = { 1: ["name", "string"], 3: ["unit", "string"], 9: ["histogram", HISTOGRAM] };
const TRACES: MessageType = {
  1: [
    "resourceSpans",
    { 1: ["resource", RESOURCE], 2: ["scopeSpans", { 1: ["scope", SCOPE], 2: ["spans", SPAN, true] }, true] },
    true,
  ],
};
const METRICS: MessageType = {
  1: [
    "resourceMetrics",
    { 1: ["resource", RESOURCE], 2: ["scopeMetrics", { 1: ["scope", SCOPE], 2: ["metrics", METRIC, true] }, true] },
    true,
  ],
};

/** Protobuf's wire format: fields that the tables do not have are passed over. */
function decode(type: MessageType, bytes: Buffer): Message {
  const message: Record<string, unknown> = {};
  let at = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const wire = tag & 7;
    const number = wire === 0 ? varint() : undefined;
    const length = wire === 1 ? 8 : wire === 5 ? 4 : wire === 2 ? varint() : 0;
    if (at + length > bytes.length || (wire > 2 && wire !== 5)) throw new Error(`not protobuf at byte ${at}`);
    const data = bytes.subarray(at, (at += length));
    const [name, kind, isRepeated] = type[tag >> 3] ?? [];
    if (name === undefined || kind === undefined) continue;
    const value = number ?? valueOf(kind, data);
    if (isRepeated === true) message[name] = [...list(message[name]), value];
    else message[name] = value;
  }
  return message;
}

function valueOf(type: FieldType, data: Buffer): unknown {
  switch (type) {
    case "string":
      return data.toString("utf8");
    case "id":
      return data.toString("hex");
    case "fixed64":
      return Number(data.readBigUInt64LE());
    case "double":
      return data.readDoubleLE();
    case "doubles":
      return Array.from({ length: data.length / 8 }, (_, index) => data.readDoubleLE(index * 8));
    case "fixed64s":
      return Array.from({ length: data.length / 8 }, (_, index) => Number(data.readBigUInt64LE(index * 8)));
    case "varint":
      throw new Error("a number came as bytes");
    default:
      return decode(type, data);
  }
}

function fromJson(value: unknown): Message {
  return value as Message;
}

function list(value: unknown): readonly Message[] {
  return Array.isArray(value) ? (value as Message[]) : [];
}

function part(value: unknown): Message {
  return typeof value === "object" && value !== null ? (value as Message) : {};
}

function attributesOf(holder: Message): Attributes {
  return Object.fromEntries(
    list(holder["attributes"]).map(({ key, value }) => {
      const [given] = Object.entries(part(value));
      // int64 is text in JSON.
      return [String(key), given?.[0] === "intValue" ? Number(given[1]) : given?.[1]];
    }),
  );
}
