// @ts-check
/** The floor over stdio: an echo server by hand, one JSON text per line. `--tools=<n> --name=<text>` */
import { makeAnswers, optionsFromArguments } from "./answers.mjs";

const answer = makeAnswers(optionsFromArguments());
/** The pieces of a line that has not ended yet. @type {string[]} */
let pieces = [];

process.stdin.setEncoding("utf8");
process.stdin.on("data", (/** @type {string} */ chunk) => {
  let start = 0;
  for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
    pieces.push(chunk.slice(start, end));
    const line = pieces.join("");
    pieces = [];
    start = end + 1;
    if (line !== "") void respond(JSON.parse(line));
  }
  if (start < chunk.length) pieces.push(chunk.slice(start));
});
process.stdin.on("end", () => process.exit(0));

/** @param {import("./answers.mjs").Message} message */
async function respond(message) {
  if (message.id === undefined) return;
  const answered = answer(message);
  const result = answered instanceof Promise ? await answered : answered;
  const body = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body })}\n`);
}
