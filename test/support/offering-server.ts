/** A stdio server that offers what is in a file, and announces every change of the file. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** In the words of the protocol; a tool without a schema gets an empty one. */
export interface Offer {
  readonly instructions?: string;
  readonly tools?: readonly { readonly name: string; readonly [key: string]: unknown }[];
  readonly prompts?: readonly object[];
  readonly resources?: readonly object[];
  readonly templates?: readonly object[];
  /** What a call of a tool returns; "arguments" for the arguments that it got, as text. */
  readonly results?: Readonly<Record<string, object | "arguments">>;
}

const SERVER = `
import { readFileSync, watchFile } from "node:fs";
import { createInterface } from "node:readline";
const file = process.argv[2];
// Whatever the environment says in place of {NAME}, plain or as base64.
const filled = (text) => text.replace(/\\{(b64:)?([A-Z_]+)\\}/g, (all, coded, name) => {
  const value = process.env[name];
  return value === undefined ? all : JSON.stringify(coded ? Buffer.from(value).toString("base64") : value).slice(1, -1);
});
const offer = () => JSON.parse(filled(readFileSync(file, "utf8")));
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const listChanged = { listChanged: true };
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: listChanged, prompts: listChanged, resources: listChanged },
    serverInfo: { name: "offering", version: "1" },
    instructions: offer().instructions,
  }),
  "tools/list": () => ({ tools: (offer().tools ?? []).map((tool) => ({ inputSchema: { type: "object" }, ...tool })) }),
  "prompts/list": () => ({ prompts: offer().prompts ?? [] }),
  "resources/list": () => ({ resources: offer().resources ?? [] }),
  "resources/templates/list": () => ({ resourceTemplates: offer().templates ?? [] }),
  "tools/call": ({ name, arguments: args }) => {
    const result = offer().results?.[name];
    if (typeof result === "object") return result;
    return { content: [{ type: "text", text: result === "arguments" ? JSON.stringify(args) : "ran " + name }] };
  },
  "prompts/get": ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: "asked " + name } }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, text: "read " + uri }] }),
};
watchFile(file, { interval: 30 }, () => {
  for (const kind of ["tools", "prompts", "resources"]) send({ method: "notifications/" + kind + "/list_changed" });
});
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (id !== undefined) send({ id, result: answers[method]?.(params) ?? {} });
  })
  .on("close", () => process.exit(0));
`;

export class OfferingServer {
  readonly #program: string;
  readonly #file: string;

  constructor(dir: string, id = "files") {
    this.#program = join(dir, "offering-server.mjs");
    this.#file = join(dir, `${id}.offer.json`);
    writeFileSync(this.#program, SERVER);
  }

  get entry(): { readonly command: string; readonly args: string[] } {
    return { command: process.execPath, args: [this.#program, this.#file] };
  }

  /** By renaming: a server that reads at the same moment must not find half of it. */
  offer(offer: Offer): void {
    writeFileSync(`${this.#file}.new`, JSON.stringify(offer));
    renameSync(`${this.#file}.new`, this.#file);
  }
}
