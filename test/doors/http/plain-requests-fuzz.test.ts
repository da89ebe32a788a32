import { hash } from "node:crypto";
import { expect, it } from "vitest";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { place, type Place, Raw } from "./support.ts";

/** The same numbers in every run. */
function numbers(seed: number): (below: number) => number {
  let count = 0;
  return (below) => hash("sha256", `${seed} ${(count += 1)}`, "buffer").readUInt32LE() % below;
}

const BODY = '{"hello":"world"}';
/** They end what was open, and the connection. */
const LAST = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

const LINES = [
  "Connection: close|Connection: keep-alive|connection: Close|Connection: close, x|Connection: Upgrade|Upgrade: websocket",
  "Content-Length: 0|Content-Length: 17|Content-Length: 18|Content-Length: 017|Content-Length: 1e1|Content-Length: ",
  "content-length:17|Transfer-Encoding: chunked|transfer-encoding: identity|TE: trailers|Trailer: x|Keep-Alive: timeout=1",
  "Host: evil.example|Host:localhost|Host: LOCALHOST|Host: localhost:1|Host: localhost, evil.example|Expect: 100-continue",
  "Origin: null|Origin: https://evil.example|Origin: http://localhost|Expect: x|HTTP2-Settings: x|Proxy-Connection: close",
  "Content-Encoding: gzip|Content-Encoding: identity|Cookie: a=b|Cookie: c=d|Set-Cookie: a|X-Two: a  b|Date: now|X: a ",
  "X: \t|X:|X : a|X| X: a|X\u0000: a|X: \u0000|X: \u007f|X: \u00ff|X_Y: a|X:  a|: a|X: a\rb|X: a\nY: b|toString: a",
  "__proto__: a|constructor: a|Authorization: Basic x|Authorization: Bearer y|X-Forwarded-For: 1.2.3.4",
  `X-Long: ${"y".repeat(900)}|X-Longer: ${"y".repeat(5000)}`,
].flatMap((some) => some.split("|"));
const FIRST = [
  "POST /mcp HTTP/1.0|POST /mcp HTTP/1.2|POST /mcp HTTP/2.0|post /mcp HTTP/1.1|GET /mcp HTTP/1.1|OPTIONS /mcp HTTP/1.1",
  "POST  /mcp HTTP/1.1|POST /mcp  HTTP/1.1|POST /mcp HTTP/1.1 |POST\t/mcp HTTP/1.1| POST /mcp HTTP/1.1|HEAD /mcp HTTP/1.1",
  "POST /mcp?a=%00&b HTTP/1.1|POST /mcp/x HTTP/1.1|POST //mcp HTTP/1.1|POST /mcp# HTTP/1.1|POST /nothing HTTP/1.1",
  "POST /mcp/../healthz HTTP/1.1|POST http://localhost/mcp HTTP/1.1|POST * HTTP/1.1|POST /m\u00ffcp HTTP/1.1",
  "POST /%6dcp HTTP/1.1|POST /mcp HTTP/1.1\r\n|\r\nPOST /mcp HTTP/1.1",
].flatMap((some) => some.split("|"));

function requestOf(pick: (below: number) => number): string {
  const lines = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Content-Length: 17"];
  if (pick(6) === 0) lines[0] = FIRST[pick(FIRST.length)] ?? "";
  for (let more = pick(4) - 1; more > 0; more -= 1)
    lines.splice(1 + pick(lines.length), 0, LINES[pick(LINES.length)] ?? "");
  if (pick(8) === 0) lines.splice(1 + pick(lines.length - 1), 1);
  const body = ["2\r\n{}\r\n0\r\n\r\n", "", `${BODY}x`][pick(20)] ?? BODY;
  return [...lines, "", body].join(pick(20) === 0 ? "\n" : "\r\n");
}

/** What one connection sends, in pieces: most are one request, some a part of one, or two. */
function piecesOf(pick: (below: number) => number): string[] {
  const pieces = [...Array.from({ length: 1 + pick(3) }, () => requestOf(pick)), LAST];
  return pieces.reduce<string[]>((all, piece) => {
    if (pick(6) === 0) return [`${all.join("")}${piece}`];
    const cut = pick(5) === 0 ? pick(piece.length) : 0;
    return [...all, ...[piece.slice(0, cut), piece.slice(cut)].filter((part) => part !== "")];
  }, []);
}

function echoing(isFrequent: boolean): HttpRoute {
  return {
    path: "/mcp",
    access: "read",
    isFrequent,
    async handle(exchange) {
      const { request, response, path, query } = exchange;
      const body = (await exchange.readBody()).toString("latin1");
      const { method, headers, rawHeaders } = request;
      const text = JSON.stringify({ method, path, query: [...query], headers, rawHeaders, body });
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
      response.end(text);
    },
  };
}

async function answerOf({ listener }: Place, pieces: readonly string[]): Promise<string> {
  const raw = await Raw.open(listener.port);
  for (const piece of pieces) {
    raw.socket.write(piece, "latin1");
    // Both ends are in this process: it is read before the next one is sent.
    for (let turn = 0; turn < 6; turn += 1) await new Promise(setImmediate);
  }
  // For what waits for more.
  let size = -1;
  const quiet = setInterval(() => {
    if (raw.received.length === size) raw.socket.end();
    size = raw.received.length;
  }, 400);
  const text = await raw.ended();
  clearInterval(quiet);
  return text.replaceAll(/^date: .*$/gim, "Date: now");
}

const REFUSED = "The request is not valid HTTP.";
/** What the route was given, on one connection. */
const taken = (text: string): string => (text.match(/\{"method".*?\}(?=HTTP|$)/g) ?? []).join("\n");

/** A refusal is sent with or without the answer to what came right before it, also by Node's own code. */
function isSame(own: string, other: string): boolean {
  return own === other || ([own, other].some((text) => text.includes(REFUSED)) && taken(own) === taken(other));
}

it("[speed-07e] requests of any form, cut anywhere, are answered as Node's own code answers them", async () => {
  const limits = { headerBytes: 4096, requestsPerMinute: 1_000_000 };
  const [ours, nodes] = await Promise.all([true, false].map((own) => place({ limits }, { routes: [echoing(own)] })));
  if (ours === undefined || nodes === undefined) throw new Error("not open");
  const pick = numbers(28);
  const all = Array.from({ length: 1200 }, () => piecesOf(pick));
  const queue = all.values();
  const different: unknown[] = [];
  const work = async (): Promise<void> => {
    for (const pieces of queue) {
      // Who sends more than is read loses, at times, what was answered before.
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const [own, other] = await Promise.all([answerOf(ours, pieces), answerOf(nodes, pieces)]);
        if (isSame(own, other)) break;
        if (attempt === 3) different.push({ pieces, own, other });
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  expect(different).toEqual([]);
});
