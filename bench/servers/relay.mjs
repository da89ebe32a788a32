// @ts-check
/**
 * The practical floor of a gateway: passes every request on and every answer back, and does nothing else. No policy, no
 * audit, no catalog, one server; a second one, started when it is first asked, has an address of its own. `--port=<n>` and either
 * `--stdio=<script> [arguments]` or `--http=<address>`.
 */
import { spawn } from "node:child_process";
import { Agent, createServer, request } from "node:http";

/** @typedef {(body: Buffer, outgoing: import("node:http").ServerResponse) => void} Forward */

const given = process.argv.slice(2);
const value = (/** @type {string} */ name) => given.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3);
const script = value("stdio");
const connect = () =>
  script === undefined ? overHttp(new URL(value("http") ?? "")) : overPipe(script, given.slice(2));
const forward = connect();
/** @type {Forward | undefined} */
let forwardToSecond;

const server = createServer((incoming, outgoing) => {
  if (incoming.method !== "POST") return void outgoing.writeHead(405).end();
  /** @type {Buffer[]} */
  const chunks = [];
  incoming.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  incoming.on("end", () => {
    const to = incoming.url?.endsWith("/second") === true ? (forwardToSecond ??= connect()) : forward;
    to(Buffer.concat(chunks), outgoing);
  });
});
server.keepAliveTimeout = 600_000;
server.listen(Number(value("port") ?? 0), "127.0.0.1");

/** @param {URL} url @returns {Forward} */
function overHttp({ hostname, port, pathname }) {
  const agent = new Agent({ keepAlive: true });
  return (body, outgoing) => {
    const headers = { "content-type": "application/json", "content-length": body.length };
    const upstream = request({ host: hostname, port, path: pathname, method: "POST", agent, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, {
        "content-type": answer.headers["content-type"] ?? "application/json",
        "content-length": answer.headers["content-length"] ?? 0,
      });
      answer.pipe(outgoing);
    });
    upstream.on("error", () => outgoing.writeHead(502).end());
    upstream.end(body);
  };
}

/** @param {string} path @param {readonly string[]} args @returns {Forward} */
function overPipe(path, args) {
  const child = spawn(process.execPath, [path, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  child.on("exit", () => process.exit(1));
  process.on("SIGTERM", () => child.kill());
  /** @type {Map<number, { id: unknown, outgoing: import("node:http").ServerResponse }>} */
  const waiting = new Map();
  let last = 0;
  /** @type {string[]} */
  let pieces = [];

  child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ chunk) => {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      pieces.push(chunk.slice(start, end));
      answer(JSON.parse(pieces.join("")));
      pieces = [];
      start = end + 1;
    }
    if (start < chunk.length) pieces.push(chunk.slice(start));
  });

  /** @param {{ id: number }} message */
  function answer(message) {
    const asked = waiting.get(message.id);
    if (asked === undefined) return;
    waiting.delete(message.id);
    const text = JSON.stringify({ ...message, id: asked.id });
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    asked.outgoing.writeHead(200, headers).end(text);
  }

  return (body, outgoing) => {
    const message = JSON.parse(body.toString());
    if (message.id === undefined) {
      outgoing.writeHead(202).end();
    } else {
      last += 1;
      waiting.set(last, { id: message.id, outgoing });
      message.id = last;
    }
    child.stdin.write(`${JSON.stringify(message)}\n`);
  };
}
