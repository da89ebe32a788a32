import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { Era } from "../../src/model/protocol.ts";
import { serveHttp } from "../fixtures/every-field/serve-http.ts";
import { type Channel, HttpChannel } from "./channels.ts";
import { channelTo, CLIENTS, ERAS } from "./doors.ts";
import { type Gateway, openGateway } from "./gateway.ts";
import { listIn, RawClient, resultOf } from "./raw-client.ts";
import { comparable, listAll, LISTS, transcribe, type Transcript } from "./transcript.ts";
import { directStdio, everyFieldUpstream, type Transport, type Upstream } from "./upstreams.ts";
import { eventually } from "../support/eventually.ts";

const TRANSPORTS: readonly Transport[] = ["stdio", "http"];
const LIMITS = { callsPerMinute: 1_000_000 };
const CAPABILITIES = { sampling: { tools: {} }, roots: {}, "x-capability": { a: 1 } };

async function transcriptOf(channel: Channel, era: Era, expected?: Transcript): Promise<Transcript> {
  const client = await RawClient.open(channel, era, { capabilities: CAPABILITIES });
  try {
    return await transcribe(client, expected);
  } finally {
    await client.close();
  }
}

interface Gap {
  readonly label: string;
  readonly applies: (upstream: Transport, server: Era, client: Era) => boolean;
}

/** What is known to be lost; every entry is a fault to be mended. */
const GAPS: readonly Gap[] = [
  // Over stdio nothing says which call it belongs to, and a modern client has no other place for it.
  {
    label: "a notification of its own",
    applies: (upstream, _server, client) => upstream === "stdio" && client === "modern",
  },
];

/** What clients hear without a gateway in between. */
const direct = new Map<string, Transcript>();

beforeAll(async () => {
  for (const era of ERAS) {
    direct.set(`${era} stdio`, await transcriptOf(directStdio(era), era));
    await using fixture = await serveHttp(era);
    direct.set(`${era} http`, await transcriptOf(new HttpChannel(fixture.url), era));
  }
});

describe("the server by itself", () => {
  it.each(ERAS)("says the same over both transports (%s)", (era) => {
    expect(comparable([...(direct.get(`${era} http`) ?? [])])).toBe(
      comparable([...(direct.get(`${era} stdio`) ?? [])]),
    );
  });
});

describe.each(TRANSPORTS.flatMap((transport) => ERAS.map((era) => ({ transport, era }))))(
  "[gate-03] [gate-02c] [gate-02d] a $era server over $transport",
  ({ transport, era: serverEra }) => {
    let upstream: Upstream;
    let gateway: Gateway;

    beforeAll(async () => {
      upstream = await everyFieldUpstream(transport, serverEra);
      gateway = await openGateway({ mcpServers: { every: { ...upstream.entry, toolPrefix: "" } }, limits: LIMITS });
    });

    afterAll(async () => {
      await gateway[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    });

    it("is spoken to in its era", () => {
      expect(gateway.hub.servers.list()[0]).toMatchObject({ state: "ready", era: serverEra });
    });

    describe.each(CLIENTS)("through the $door door to a $era client", ({ era, door }) => {
      it("is what it is without the gateway", async () => {
        const expected = direct.get(`${era} ${transport}`) ?? new Map();
        const transcript = await transcriptOf(channelTo(gateway, door), era, expected);
        const leeway = { eras: era !== serverEra };
        expect([...transcript.keys()]).toEqual([...expected.keys()]);
        const differing = [...transcript.keys()].filter(
          (label) => comparable(transcript.get(label), leeway) !== comparable(expected.get(label), leeway),
        );
        const gaps = GAPS.filter(({ applies }) => applies(transport, serverEra, era)).map(({ label }) => label);
        for (const label of differing.filter((each) => !gaps.includes(each))) {
          expect.soft(comparable(transcript.get(label), leeway), label).toBe(comparable(expected.get(label), leeway));
        }
        // A gap that is gone must leave the list.
        expect(gaps.filter((label) => !differing.includes(label))).toEqual([]);
      });
    });
  },
);

const OWN = "every://text";
const MOVED = "toolcrib://servers/two/every://text";

describe.each(ERAS.flatMap((server) => ERAS.map((client) => ({ server, client }))))(
  "[gate-03] two $server servers with the same names and URIs, to a $client client",
  ({ server: serverEra, client: clientEra }) => {
    let [one, two]: Upstream[] = [];
    let gateway: Gateway;
    let client: RawClient;

    beforeAll(async () => {
      one = await everyFieldUpstream("http", serverEra);
      two = await everyFieldUpstream("http", serverEra);
      gateway = await openGateway({ mcpServers: { one: one.entry, two: two.entry }, limits: LIMITS });
      client = await RawClient.open(new HttpChannel(`${gateway.url}/mcp`), clientEra);
    });

    afterAll(async () => {
      await client.close();
      await gateway[Symbol.asyncDispose]();
      await one?.[Symbol.asyncDispose]();
      await two?.[Symbol.asyncDispose]();
    });

    const leeway = { eras: true };
    const expected = (label: string): JsonObject => direct.get(`${clientEra} http`)?.get(label) ?? {};
    /** What the second server says, in public URIs. */
    const moved = (text: string): string =>
      text.replaceAll(
        /"every:\/\/(text|blob|many|echo\/5\?q=1|echo\/7|files\/a)"/g,
        '"toolcrib://servers/two/every://$1"',
      );

    it("lists both, and only names and shared URIs are others", async () => {
      for (const method of Object.keys(LISTS) as (keyof typeof LISTS)[]) {
        const field =
          method === "resources/list" ? "uri" : method === "resources/templates/list" ? "uriTemplate" : "name";
        const entries = await listAll(client, method);
        const plain = expected(method)["entries"] as JsonObject[];
        const [first, second] = field === "name" ? ["one__", "two__"] : ["", "toolcrib://servers/two/"];
        const renamed = [first, second].flatMap((prefix) =>
          plain.map((entry) => ({ ...entry, [field]: `${prefix}${String(entry[field])}` })),
        );
        expect(comparable(entries, leeway)).toBe(comparable(renamed, leeway));
      }
    });

    it("calls, reads and completes under public names, and the servers hear their own", async () => {
      const call = await client.call("two__echo", { a: 1 });
      expect(JSON.stringify(call.result?.["structuredContent"])).toContain('"name":"echo"');
      const prompt = await client.request("prompts/get", { name: "two__echo", arguments: { first: "1" } });
      expect(JSON.stringify(prompt.result)).toContain(String.raw`\"name\":\"echo\"`);
      for (const ref of [
        { type: "ref/prompt", name: "two__echo" },
        { type: "ref/resource", uri: "toolcrib://servers/two/every://echo/{id}{?q,r}" },
      ]) {
        const answer = await client.request("completion/complete", { ref, argument: { name: "id", value: "" } });
        const { values } = resultOf(answer)["completion"] as { values: string[] };
        const heard = (JSON.parse(values[1] ?? "{}") as { ref: JsonObject }).ref;
        expect(heard).toEqual(
          ref.type === "ref/prompt"
            ? { type: ref.type, name: "echo" }
            : { type: ref.type, uri: "every://echo/{id}{?q,r}" },
        );
      }
    });

    it("reads what is listed and what fits a template, with public URIs in what comes", async () => {
      for (const [asked, heard] of [
        [OWN, OWN],
        [MOVED, OWN],
        ["toolcrib://servers/two/every://many", "every://many"],
        ["toolcrib://servers/two/every://files/a", "every://files/a"],
      ] as const) {
        const answer = await client.request("resources/read", { uri: asked });
        const [content] = listIn(answer, "contents");
        expect(content?.["uri"]).toBe(asked);
        const plain = expected(`read ${heard}`)["answer"] as JsonObject | undefined;
        if (plain === undefined) continue;
        const text = comparable(answer, leeway);
        expect(text).toBe(asked === heard ? comparable(plain, leeway) : moved(comparable(plain, leeway)));
      }
      const { result } = await client.request("resources/read", { uri: "toolcrib://servers/two/every://echo/7" });
      expect(JSON.stringify(result)).toContain(String.raw`\"uri\":\"every://echo/7\"`);
    });

    it("names resources in results as they can be read", async () => {
      const first = await client.call("one__content");
      expect(comparable(first, leeway)).toBe(comparable(expected("every content")["answer"], leeway));
      const second = await client.call("two__content");
      const known = moved(comparable(expected("every content")["answer"], leeway));
      // Of content that nobody knows nothing is touched.
      const untouched = known.replace(/("video",\s+"uri": ")toolcrib:\/\/servers\/two\//, "$1");
      expect(comparable(second, leeway)).toBe(untouched);
      const links = listIn(second, "content").filter(({ type }) => type === "resource_link");
      for (const { uri } of links.slice(0, 2)) {
        expect((await client.request("resources/read", { uri })).error).toBeUndefined();
      }
      const prompt = await client.request("prompts/get", { name: "two__content" });
      expect(JSON.stringify(prompt.result)).toContain(`"uri":"${MOVED}"`);
    });

    it("tells of updates under the public URI, to those who follow that one", async () => {
      const watched = "every://watched";
      const public_ = `toolcrib://servers/two/${watched}`;
      const updates = async (uri: string): Promise<void> => {
        if (clientEra === "legacy") {
          const answer = await client.request("resources/subscribe", { uri });
          expect(comparable(answer)).toBe(comparable({ result: {} }));
          return;
        }
        client.start("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } });
        await eventually(() => client.noticed("notifications/subscriptions/acknowledged")[0]);
      };
      await updates(public_);
      await eventually(() => two?.fixture?.server.seen.subscribed.includes(watched));
      expect(one?.fixture?.server.seen.subscribed).toEqual([]);
      one?.fixture?.server.touch(watched);
      two?.fixture?.server.touch(watched);
      const updated = await eventually(() => client.noticed("notifications/resources/updated")[0]);
      const { _meta: meta, ...rest } = updated ?? {};
      expect(rest).toEqual({ uri: public_, title: "touched", "x-update": [1] });
      expect(meta).toMatchObject({ u: 1 });
      expect(client.noticed("notifications/resources/updated")).toHaveLength(1);
    });
  },
);
