/** What a client hears of the every-field server, in a form in which two runs can be compared. */
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { RawClient, Said } from "./raw-client.ts";

export interface Probe {
  readonly label: string;
  readonly method: string;
  readonly params: JsonObject;
}

/** Parsed, because a literal would set the prototype instead of a key. */
const ODD = JSON.parse(
  '{"":"empty","__proto__":{"a":1},"constructor":null,"n":[9007199254740991,5e-324,1e300,0.1],"u":"\\u2028\\ud83d\\ude00","deep":[[[[[{}]]]]]}',
) as JsonObject;
const META = { "example.com/trace": { id: [1, null] }, traceparent: "00-1-2-03" };
const UNKNOWN = { "x-param": { a: [1] } };
const PROTO = JSON.parse('{"__proto__":[1],"constructor":2}') as JsonObject;

const call = (label: string, name: string, args: JsonObject, more: JsonObject = {}): Probe => ({
  label,
  method: "tools/call",
  params: { name, arguments: args, ...more },
});
const refuse = (label: string, error: JsonObject): Probe => call(`error: ${label}`, "refuse", error);
const read = (uri: string, more: JsonObject = {}): Probe => ({
  label: `read ${uri}`,
  method: "resources/read",
  params: { uri, ...more },
});

export const PROBES: readonly Probe[] = [
  call("echo", "echo", {}),
  call("echo of odd arguments", "echo", ODD),
  call("echo of meta and unknown params", "echo", { a: 1 }, { _meta: META, ...UNKNOWN }),
  call("echo of params with names of the prototype", "echo", {}, PROTO),
  call("every content", "content", {}),
  ...[{ a: [null, {}] }, [1, [null]], [], null, "text", 0, false].map((value) =>
    call(`structured ${JSON.stringify(value)}`, "structured", { value }),
  ),
  call("an error result", "structured", { isError: true, value: { why: null } }),
  refuse("code and message", { code: -32000, message: "plain" }),
  refuse("with data", { code: -32001, message: "data", data: { a: [null, { b: 1 }] } }),
  refuse("data null", { code: -31999, message: "null", data: null }),
  refuse("data text", { code: 7, message: "", data: "text" }),
  refuse("data false", { code: -1, message: "false", data: false }),
  refuse("unknown fields", { code: 40400, message: "more", data: [], "x-error": { a: 1 } }),
  refuse("resource not found", { code: -32002, message: "not found", data: { uri: "every://text", more: [1] } }),
  refuse("url elicitation needed", {
    code: -32042,
    message: "go there",
    data: {
      elicitations: [{ mode: "url", elicitationId: "1", url: "https://example.com/x", message: "m", "x-e": 1 }],
      "x-d": null,
    },
  }),
  refuse("invalid params", { code: -32602, message: "bad", data: { field: "a" } }),
  refuse("method not found", { code: -32601, message: "no", data: 1 }),
  refuse("internal", { code: -32603, message: "inside" }),
  call("progress, number", "progress", {}, { _meta: { progressToken: 0 } }),
  call("progress, text", "progress", {}, { _meta: { progressToken: "tok" } }),
  call("a notification of its own", "notice", {}),
  read("every://text", { _meta: META, ...UNKNOWN }),
  read("every://blob"),
  read("every://many"),
  read("file:///tmp/a%20b/ü?x=1#frag"),
  read("every://missing"),
  read("every://echo/5?q=a%20b", { _meta: META, ...UNKNOWN }),
  read("every://files/a/b/c.txt"),
  {
    label: "prompt",
    method: "prompts/get",
    params: { name: "echo", arguments: { first: "", "": "x" }, _meta: META, ...UNKNOWN },
  },
  { label: "prompt of every content", method: "prompts/get", params: { name: "content" } },
  {
    label: "completion of a prompt",
    method: "completion/complete",
    params: {
      ref: { type: "ref/prompt", name: "echo", title: "Says what it got" },
      argument: { name: "first", value: "" },
      context: { arguments: { second: "2" }, "x-context": 1 },
      _meta: META,
      ...UNKNOWN,
    },
  },
  {
    label: "completion of a template",
    method: "completion/complete",
    params: {
      ref: { type: "ref/resource", uri: "every://echo/{id}{?q,r}" },
      argument: { name: "id", value: "é", "x-argument": 1 },
    },
  },
];

export const LISTS = {
  "tools/list": "tools",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
  "prompts/list": "prompts",
} as const;

export type Transcript = Map<string, JsonObject>;

/** Every page of a list. */
export async function listAll(client: RawClient, method: keyof typeof LISTS): Promise<JsonObject[]> {
  const entries: JsonObject[] = [];
  for (let cursor: unknown; ;) {
    const { result = {}, error } = await client.request(method, cursor === undefined ? {} : { cursor });
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    entries.push(...(result[LISTS[method]] as JsonObject[]));
    cursor = result["nextCursor"];
    if (cursor === undefined) return entries;
  }
}

/** @param expected A run to compare with: as many notifications are waited for as came there. */
export async function transcribe(client: RawClient, expected?: Transcript): Promise<Transcript> {
  const transcript: Transcript = new Map();
  for (const method of Object.keys(LISTS) as (keyof typeof LISTS)[]) {
    transcript.set(method, { entries: await listAll(client, method) });
  }
  if (client.era === "legacy") await client.request("logging/setLevel", { level: "debug" });
  const logProbe = call(
    "log",
    "log",
    {},
    client.era === "legacy" ? {} : { _meta: { "io.modelcontextprotocol/logLevel": "debug" } },
  );
  // A legacy server behind the gateway hears of the level from the first such request on.
  if (client.era === "modern") await client.request(logProbe.method, logProbe.params);
  for (const { label, method, params } of [...PROBES, logProbe]) {
    const before = client.notices.length;
    const answer = await client.request(method, params);
    const wanted = expected?.get(label)?.["notices"];
    // Some of them travel on another stream than the answer.
    await patiently(() => client.notices.length - before >= (Array.isArray(wanted) ? wanted.length : 0));
    const notices: Said[] = client.notices.slice(before);
    transcript.set(label, { answer, notices });
  }
  return transcript;
}

/** Gives up after a while: then the comparison says what is missing. */
async function patiently(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** What may differ between two runs. */
export interface Leeway {
  /** Fields that one era demands and the other does not know. */
  readonly eras?: boolean;
}

/** The same text for two values that mean the same. */
export function comparable(value: unknown, leeway: Leeway = {}): string {
  return JSON.stringify(sorted(value, leeway), null, 1);
}

const ENVELOPE = new Set(["resultType", "ttlMs", "cacheScope"]);

function sorted(value: unknown, leeway: Leeway): unknown {
  if (typeof value === "string") return sortedText(value, leeway);
  if (Array.isArray(value)) return value.map((item) => sorted(item, leeway));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value)
    .filter(([key]) => key !== "progressToken" && !(leeway.eras === true && ENVELOPE.has(key)))
    .map(([key, member]) => [key, key === "_meta" ? ownMeta(member, leeway) : member] as const)
    .filter(([key, member]) => key !== "_meta" || Object.keys(member as object).length > 0)
    .map(
      ([key, member]) =>
        [key, leeway.eras === true && key === "code" ? codeInEras(member) : sorted(member, leeway)] as const,
    )
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}

/** A missing resource has a code of its own in the legacy era only. */
function codeInEras(code: unknown): unknown {
  return code === -32002 ? -32602 : code;
}

/** Echoed params are texts of JSON. */
function sortedText(text: string, leeway: Leeway): unknown {
  return text.startsWith('{"') ? { json: sorted(JSON.parse(text), leeway) } : text;
}

const OF_EACH_HOP = new Set(["io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel"]);

function ownMeta(meta: unknown, leeway: Leeway): JsonObject {
  if (!isJsonObject(meta)) return {};
  return Object.fromEntries(
    Object.entries(meta).filter(
      ([key]) =>
        key !== "progressToken" &&
        !OF_EACH_HOP.has(key) &&
        !(leeway.eras === true && key.startsWith("io.modelcontextprotocol/")),
    ),
  );
}
