/**
 * A stdio MCP server that tells everything it knows wherever it can: `node leaky-server.mjs <crash|serve|silent> …`.
 * What it knows is its environment and its arguments.
 */
const [mode, ...rest] = process.argv.slice(2);
const known = Object.entries(process.env)
  .filter(([name]) => name.startsWith("CANARY_") || name.endsWith("_TOKEN") || name === "URL_OF_DB")
  .map(([, value]) => value)
  .concat(rest);
const base64 = (text) => Buffer.from(text).toString("base64");
const leaks = known.flatMap((value) => [value, base64(value), base64(`user:${value}`), encodeURIComponent(value), Buffer.from(value).toString("hex")]);
const everything = leaks.join(" | ");

process.stderr.write(`starting with ${everything}\n${JSON.stringify(process.env)}\n`);
if (mode === "crash") {
  process.stderr.write(`Error: cannot log in with ${everything}\n`);
  process.exit(3);
}

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (value, isError = false) => ({ content: [{ type: "text", text: value }], structuredContent: { [value]: [value] }, isError });

const TOOLS = {
  dump: () => text(everything),
  fails: () => text(`failed: ${everything}`, true),
  dies: () => process.exit(9),
};

function answer({ id, method, params }) {
  if (mode === "silent") return;
  if (method === "initialize") {
    process.stdout.write(`not JSON: ${everything}\n`);
    const serverInfo = { name: "leaky", version: "1" };
    const capabilities = { tools: {}, resources: {}, prompts: {}, logging: {} };
    return send({ id, result: { protocolVersion: "2025-06-18", serverInfo, capabilities, instructions: "none" } });
  }
  if (method === "tools/list") {
    const names = [...Object.keys(TOOLS), "refuses", "tells"];
    const bad = [{ name: "bad tool", description: 7 }];
    return send({ id, result: { tools: [...names.map((name) => ({ name, description: name, inputSchema: { type: "object" } })), ...bad] } });
  }
  if (method === "resources/list") return send({ id, result: { resources: [{ uri: "leak://all", name: "all" }] } });
  if (method === "resources/read") return send({ id, result: { contents: [{ uri: params.uri, text: everything }] } });
  if (method === "prompts/list") return send({ id, result: { prompts: [{ name: "ask" }] } });
  if (method === "prompts/get") return send({ id, result: { messages: [{ role: "user", content: { type: "text", text: everything } }] } });
  if (method === "tools/call" && params.name === "refuses") {
    return send({ id, error: { code: -32000, message: `refused: ${everything}`, data: { leaks } } });
  }
  if (method === "tools/call" && params.name === "tells") {
    send({ method: "notifications/message", params: { level: "debug", logger: everything, data: { leaks, nested: { everything } } } });
    const progressToken = params._meta?.progressToken;
    if (progressToken !== undefined) send({ method: "notifications/progress", params: { progressToken, progress: 1, message: everything } });
    return send({ id, result: text("told") });
  }
  if (method === "tools/call") return send({ id, result: TOOLS[params.name]() });
  if (id !== undefined) send({ id, ...(method === "ping" ? { result: {} } : { error: { code: -32601, message: `no ${method} but ${everything}` } }) });
}

let buffer = "";
process.stdin.on("data", (chunk) => {
  buffer += chunk;
  for (let end = buffer.indexOf("\n"); end !== -1; end = buffer.indexOf("\n")) {
    answer(JSON.parse(buffer.slice(0, end)));
    buffer = buffer.slice(end + 1);
  }
});
process.stdin.on("end", () => process.exit(0));
