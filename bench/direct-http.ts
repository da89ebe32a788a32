/** The baseline: one tool call over HTTP with nothing in between, as cheap as Node has it. */
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface DirectHttp {
  call(): Promise<unknown>;
  close(): Promise<void>;
}

const CALL = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "echo", arguments: { text: "hello" } },
});

/** A server by hand in this process, on loopback, on one connection that is kept. */
export async function directHttp(): Promise<DirectHttp> {
  const server = createServer((incoming, answer) => {
    let body = "";
    incoming.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    incoming.on("end", () => {
      const asked: { id: number; params: { arguments: { text: string } } } = JSON.parse(body);
      const result = { content: [{ type: "text", text: asked.params.arguments.text }] };
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ jsonrpc: "2.0", id: asked.id, result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on a port has an address with one.
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(CALL) };

  return {
    call: () =>
      new Promise((resolve, reject) => {
        const outgoing = request(
          { host: "127.0.0.1", port, path: "/mcp", method: "POST", agent, headers },
          (answer) => {
            let body = "";
            answer.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
            answer.on("end", () => resolve(JSON.parse(body)));
            answer.on("error", reject);
          },
        );
        outgoing.on("error", reject);
        outgoing.end(CALL);
      }),
    close: async () => {
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
