// @ts-check
/** The floor over HTTP: an echo server by hand on node:http that answers with JSON. Says its address on stdout. `--port=<n>` */
import { createServer } from "node:http";
import { makeAnswers, optionsFromArguments } from "./answers.mjs";

const answer = makeAnswers(optionsFromArguments());

const server = createServer((incoming, outgoing) => {
  if (incoming.method !== "POST") return void outgoing.writeHead(405).end();
  /** @type {Buffer[]} */
  const chunks = [];
  incoming.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  incoming.on("end", () => void respond(JSON.parse(Buffer.concat(chunks).toString()), outgoing));
});
server.keepAliveTimeout = 600_000;
const port = process.argv.find((one) => one.startsWith("--port="))?.slice("--port=".length) ?? 0;
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  process.stdout.write(`http://127.0.0.1:${address.port}/mcp\n`);
});

/** @param {import("./answers.mjs").Message} message @param {import("node:http").ServerResponse} outgoing */
async function respond(message, outgoing) {
  if (message.id === undefined) return void outgoing.writeHead(202).end();
  const answered = answer(message);
  const result = answered instanceof Promise ? await answered : answered;
  const body = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
  const text = JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body });
  outgoing.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  outgoing.end(text);
}
