/** Servers that link to resources, listed or not, and say who read them. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";

/**
 * Its tool `link` gives links to the URIs that it is told, `update` tells of an update of one. A read of what it `has`
 * answers `label uri`; anything else it does not know. It writes down what it is asked about resources.
 */
const SERVER = `
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
const { label, has = [], resources = [], templates = [], hasResources = true } = JSON.parse(process.argv[2]);
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const known = (uri) => [...has, ...resources].includes(uri);
const unknown = (uri) => ({ error: { code: -32002, message: label + " has no " + uri, data: { uri } } });
const tool = (name) => ({ name, inputSchema: { type: "object" } });
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, ...(hasResources && { resources: { subscribe: true } }) },
    serverInfo: { name: label, version: "1" },
  }),
  "tools/list": () => ({ tools: [tool("link"), tool("embed"), tool("update")] }),
  "resources/list": () => ({ resources: resources.map((uri) => ({ uri, name: uri })) }),
  "resources/templates/list": () => ({ resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: "t" })) }),
  "resources/read": ({ uri }) => known(uri) ? { contents: [{ uri, text: label + " " + uri }] } : unknown(uri),
  "resources/subscribe": ({ uri }) => known(uri) ? {} : unknown(uri),
  "resources/unsubscribe": () => ({}),
  "tools/call": ({ name, arguments: { uris = [] } }) => {
    if (name === "update") for (const uri of uris) send({ method: "notifications/resources/updated", params: { uri } });
    const block = (uri) => name === "link" ? { type: "resource_link", uri, name: uri } : { type: "resource", resource: { uri, text: "" } };
    return { content: name === "update" ? [] : uris.map(block) };
  },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) return;
  if (params.uri !== undefined) appendFileSync(process.argv[3], method + " " + params.uri + "\\n");
  const { error, ...result } = answers[method]?.(params) ?? {};
  send(error === undefined ? { id, result } : { id, error });
}).on("close", () => process.exit());
`;

interface LinkingOptions {
  /** What it can read without listing it. */
  readonly has?: readonly string[];
  readonly resources?: readonly string[];
  readonly templates?: readonly string[];
  /** False for a server that knows nothing of resources. */
  readonly hasResources?: boolean;
}

export class LinkingServers {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-links-"));

  constructor() {
    writeFileSync(join(this.dir, "server.mjs"), SERVER);
    onTestFinished(() => rmSync(this.dir, { recursive: true, force: true }));
  }

  /** The entry of a server. */
  server(label: string, options: LinkingOptions = {}, more: Partial<ServerEntryInput> = {}): ServerEntryInput {
    const args = [join(this.dir, "server.mjs"), JSON.stringify({ label, ...options }), this.#log(label)];
    return { command: process.execPath, args, ...more };
  }

  /** What it was asked about resources, in order. */
  asked(label: string): string[] {
    const file = this.#log(label);
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  #log(label: string): string {
    return join(this.dir, `${label}.log`);
  }
}
