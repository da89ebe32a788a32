/** Rules on resources against a server that reads files as plain servers do, through every door a caller can use. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { workspace, type Workspace } from "../cli/run-cli.ts";
import { eventually } from "../support/eventually.ts";

const SERVER = resolve(import.meta.dirname, "../fixtures/file-resources-server.mjs");
const CALLER = "caller-token-of-the-test-1234567890";

/** Each names /private/secret.txt to the server. */
const SPELLINGS = [
  "file:///private/secret.txt",
  "FILE:///private/secret.txt",
  "file:///public/../private/secret.txt",
  "file:///%70rivate/secret.txt",
  "file:///%2570rivate/secret.txt",
  "file:///public/%2e%2e/private/secret.txt",
  "file:///public%2f..%2fprivate/secret.txt",
  "file://localhost/private/secret.txt",
  "file://elsewhere/private/secret.txt",
  "file:/private/secret.txt",
  "file:////private/secret.txt",
  "file:///private//secret.txt",
  "file:///private/./secret.txt",
  "file:///private/secret.txt?raw",
  "file:///private/secret.txt#top",
  "file:///private/secret.txt/",
  " file:///private/secret.txt",
  "fi\nle:///private/secret.txt",
  "file:\\\\\\private\\secret.txt",
  "/private/secret.txt",
  "toolcrib://servers/files/file:///private/secret.txt",
  "toolcrib://servers/files/FILE:/public/../%70rivate/secret.txt",
];

interface Place {
  readonly place: Workspace;
  /** What reached the server. */
  asked(): string[];
}

function filesAt(tools: object, { templates = false, more = {} } = {}): Place {
  const place = workspace();
  for (const [name, text] of [
    ["public/a.txt", "for everyone"],
    ["private/secret.txt", "TOP-SECRET"],
    ["private/other.txt", "TOP-SECRET too"],
  ] as const) {
    mkdirSync(join(place.dir, "files", name, ".."), { recursive: true });
    writeFileSync(join(place.dir, "files", name), text);
  }
  const log = join(place.dir, "asked.log");
  const args = [SERVER, join(place.dir, "files"), log, ...(templates ? ["--templates"] : [])];
  place.configure({ files: { command: process.execPath, args, toolPrefix: "" } }, { tools, ...more });
  return {
    place,
    asked: () =>
      existsSync(log)
        ? readFileSync(log, "utf8")
            .split("\n")
            .filter((line) => line !== "")
        : [],
  };
}

interface Served {
  readonly url: string;
  client(onAsk?: (message: string) => string): Promise<Client>;
  rest(path: string, body: object): Promise<{ status: number; text: string }>;
}

const AUTH = { http: { auth: { tokens: [{ token: CALLER, user: "caller", scopes: ["read", "call"] }] } } };

async function serve({ place }: Place, token?: string): Promise<Served> {
  const { child, finished } = place.start(["serve", "--config", place.configFile, "--port", "0", "--json"]);
  let stdout = "";
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
  const url = await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`serve ended: ${(await finished).stderr}`);
    return /http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/.exec(stdout)?.[0];
  });
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await finished;
  });
  const base = url;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return {
    url: base,
    client: async (onAsk) => {
      const client = new Client(
        { name: "test", version: "1" },
        { capabilities: onAsk === undefined ? {} : { elicitation: {} } },
      );
      if (onAsk !== undefined) {
        client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
          const answer = onAsk(params.message);
          // As a person would: a refusal that comes at once is taken for that of a program, and the call waits for the operator.
          if (answer === "no") await new Promise((resolve) => setTimeout(resolve, 1200));
          return { action: "accept", content: { answer } };
        });
      }
      await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { requestInit: { headers } }));
      onTestFinished(() => client.close());
      return client;
    },
    rest: async (path, body) => {
      const answer = await fetch(`${base}/api/v1${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      return { status: answer.status, text: await answer.text() };
    },
  };
}

const outcome = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    (result) => `ok ${JSON.stringify(result)}`,
    (error: unknown) => `refused ${String(error)}`,
  );

describe("[trust-03c] a denied resource, through the doors", () => {
  it.each([{ templates: false }, { templates: true }])(
    "is read in no spelling over MCP and REST, and honest reading goes on (%o)",
    async ({ templates }) => {
      const files = filesAt({ deny: ["file:///private/*"] }, { templates, more: AUTH });
      const { client, rest } = await serve(files, CALLER);
      const caller = await client();
      const listed = (await caller.listResources()).resources.map(({ uri }) => uri);
      expect(listed).toEqual(["file:///public/a.txt"]);
      for (const uri of SPELLINGS) {
        for (const answer of [
          await outcome(caller.readResource({ uri })),
          await outcome(caller.subscribeResource({ uri })),
        ]) {
          expect([uri, answer.startsWith("refused"), answer.includes("TOP-SECRET")]).toEqual([uri, true, false]);
        }
        const { status, text } = await rest("/mcp/resources/read", { uri });
        expect([uri, status, text.includes("TOP-SECRET")]).toEqual([uri, 404, false]);
      }
      expect(files.asked()).toEqual([]);
      for (const uri of [
        "file:///public/a.txt",
        ...(templates ? ["file:///public/../public/a.txt", "file:///public/%61.txt"] : ["FILE:///public/a.txt"]),
      ]) {
        expect(await outcome(caller.readResource({ uri }))).toContain("for everyone");
      }
      expect(await outcome(caller.subscribeResource({ uri: "file:///public/a.txt" }))).toContain("ok");
      expect((await rest("/mcp/resources/read", { uri: "file:///public/a.txt" })).text).toContain("for everyone");
    },
  );

  it("is read in no spelling by `toolcrib read`, which names the rule", async () => {
    const files = filesAt({ deny: ["file:///private/*"] });
    const read = (uri: string): ReturnType<Workspace["run"]> =>
      files.place.run(["read", uri, "--config", files.place.configFile]);
    for (const uri of [
      "FILE:///private/secret.txt",
      "file:///public/..%2fprivate/secret.txt",
      " file:/private/secret.txt",
    ]) {
      const { code, stdout, stderr } = await read(uri);
      expect([uri, code, stdout.includes("TOP-SECRET")]).toEqual([uri, 3, false]);
      expect(stderr).toContain('deny "file:///private/*"');
    }
    expect(files.asked()).toEqual([]);
    expect(await read("file:///public/a.txt")).toMatchObject({ code: 0, stdout: "for everyone\n" });
  });

  it("may be named by its server in the rule, at any level", async () => {
    const files = filesAt(
      { deny: ["toolcrib://servers/files/file:///private/secret*"] },
      { templates: true, more: AUTH },
    );
    const caller = await (await serve(files, CALLER)).client();
    for (const uri of SPELLINGS)
      expect([uri, (await outcome(caller.readResource({ uri }))).includes("TOP")]).toEqual([uri, false]);
    expect(files.asked()).toEqual([]);
    expect(await outcome(caller.readResource({ uri: "file:///public/a.txt" }))).toContain("for everyone");
  });

  it("is not completed into, and what is below it is not suggested", async () => {
    const files = filesAt({ deny: ["file:///private*"] }, { templates: true, more: AUTH });
    const caller = await (await serve(files, CALLER)).client();
    const complete = (value: string, uri = "file:///{+path}"): Promise<string> =>
      outcome(caller.complete({ ref: { type: "ref/resource", uri }, argument: { name: "path", value } }));
    for (const value of ["private/", "public/../private/", "%70rivate/", "./private/s"]) {
      expect([value, (await complete(value)).includes("secret")]).toEqual([value, false]);
    }
    expect(await complete("", "FILE:///{+path}")).toContain("refused");
    expect(files.asked()).toEqual([]);
    const all = await complete("p");
    expect(all).toContain('"values":["public"]');
    expect(all).not.toContain("total");
    expect(await complete("public/")).toContain("public/a.txt");
  });
});

describe("[trust-03d] a resource that needs approval", () => {
  it("is asked for in every spelling, once, and a yes is one to that spelling", async () => {
    const files = filesAt({ ask: ["file:///private/*"] }, { templates: true });
    const questions: string[] = [];
    let answer = "no";
    const caller = await (
      await serve(files)
    ).client((message) => {
      questions.push(message);
      return answer;
    });
    await Promise.all(
      SPELLINGS.map(async (uri) => {
        expect([uri, await outcome(caller.readResource({ uri }))]).toEqual([uri, expect.stringContaining("refused")]);
      }),
    );
    expect(questions).toHaveLength(SPELLINGS.length);
    for (const uri of SPELLINGS) expect(questions).toContainEqual(expect.stringContaining(uri));
    expect(files.asked()).toEqual([]);
    answer = "session";
    const uri = "file:///public/../private/secret.txt";
    questions.length = 0;
    expect(await outcome(caller.readResource({ uri }))).toContain("TOP-SECRET");
    expect(await outcome(caller.readResource({ uri }))).toContain("TOP-SECRET");
    expect(questions).toHaveLength(1);
    answer = "no";
    expect(await outcome(caller.readResource({ uri: "file:///private/secret.txt" }))).toContain("refused");
    expect(questions).toHaveLength(2);
    expect(await outcome(caller.readResource({ uri: "file:///public/a.txt" }))).toContain("for everyone");
    expect(questions).toHaveLength(2);
  });

  it("is not let in by an exception that its spelling happens to match", async () => {
    const files = filesAt({ deny: ["file:///*", "!file:///public/*"] }, { templates: true, more: AUTH });
    const caller = await (await serve(files, CALLER)).client();
    for (const uri of ["file:///public/../private/secret.txt", "file:///public/..%2fprivate/secret.txt"]) {
      expect(await outcome(caller.readResource({ uri }))).toContain("refused");
    }
    expect(files.asked()).toEqual([]);
    expect(await outcome(caller.readResource({ uri: "file:///public/a.txt" }))).toContain("for everyone");
  });
});
