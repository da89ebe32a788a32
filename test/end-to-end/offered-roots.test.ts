/** The real filesystem server, which drops the folder of its arguments as soon as a client offers roots. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { startScriptedModel } from "../../src/testing/index.ts";
import { bundled, type Workspace, workspace } from "../cli/run-cli.ts";
import { eventually } from "../support/eventually.ts";

const SECRET = "API_KEY=canary-of-the-parent-folder";

/** A folder with a secret, and below it the one that the config names; and a model that reads each file it is told to. */
async function project(entry: JsonObject = {}, rest: JsonObject = {}): Promise<Workspace> {
  const place = workspace();
  mkdirSync(join(place.dir, "work"));
  place.write(".env", SECRET);
  place.write("work/x.txt", "the honest file");
  const model = await startScriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return { text: last.results.map(({ text }) => text).join(" ") };
    const said = messages.findLast(({ role }) => role === "user")?.text ?? "";
    const [, name = "", path = ""] = /call (\S+) (\S+)/.exec(said) ?? [];
    return { calls: [{ name, arguments: { path } }] };
  });
  onTestFinished(() => model.close());
  const agent = { model: { baseUrl: `${model.url}/v1`, model: "one" } };
  const files = { ...bundled("filesystem", "./work"), cwd: ".", ...entry };
  place.configure({ files }, { agent, ...rest });
  return place;
}

const READ = "files__read_text_file";
/** The paths by which a model would try. */
const attempts = ({ dir }: Workspace): string[] => [join(dir, ".env"), ".env", "../.env", join(dir, "work/../.env")];

async function run(place: Workspace, path: string, tool = READ): Promise<string> {
  const { stdout, stderr } = await place.runHere([
    "run",
    "--mode",
    "auto",
    "--config",
    place.configFile,
    `call ${tool} ${path}`,
  ]);
  return stdout + stderr;
}

/** Turns of `toolcrib acp` in the folder, as an editor asks for them, and what it said until the end of each. */
async function acp(
  place: Workspace,
  paths: readonly string[],
  mcpServers: object[] = [],
  tool = READ,
): Promise<string[]> {
  const { child, finished } = place.start(["acp", "--mode", "auto", "--config", place.configFile], { open: true });
  const answers = new Map<number, (result: JsonObject) => void>();
  let said = "";
  createInterface({ input: child.stdout ?? process.stdin }).on("line", (line) => {
    const message: unknown = JSON.parse(line);
    if (!isJsonObject(message)) return;
    said += line;
    if (typeof message["id"] === "number" && message["method"] === undefined) answers.get(message["id"])?.(message);
  });
  let last = 0;
  const request = async (method: string, params: object): Promise<JsonObject> => {
    const id = ++last;
    const answer = new Promise<JsonObject>((resolve) => answers.set(id, resolve));
    child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const { result, error } = await answer;
    if (!isJsonObject(result)) throw new Error(JSON.stringify(error));
    return result;
  };
  await request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await request("session/new", { cwd: place.dir, mcpServers });
  const turns: string[] = [];
  for (const path of paths) {
    said = "";
    await request("session/prompt", { sessionId, prompt: [{ type: "text", text: `call ${tool} ${path}` }] });
    turns.push(said);
  }
  child.stdin?.end();
  await finished;
  return turns;
}

describe("[trust-09a] the folder that a server's entry names", () => {
  it("is all that a model reaches with `run`, wherever it is started", async () => {
    const place = await project();
    for (const path of attempts(place))
      expect([path, (await run(place, path)).includes("canary")]).toEqual([path, false]);
    expect(await run(place, join(place.dir, ".env"))).toContain("Access denied");
    expect(await run(place, join(place.dir, "work/x.txt"))).toContain("the honest file");
  });

  it.each(["shared", "session"])(
    "is all that a model reaches with `acp` in the editor's folder (%s)",
    async (isolation) => {
      const place = await project({ isolation });
      const turns = await acp(place, [...attempts(place), join(place.dir, "work/x.txt")]);
      for (const said of turns) expect(said).not.toContain("canary");
      expect(turns.at(-1)).toContain("the honest file");
    },
  );
});

describe("[trust-09b] roots", () => {
  it("are those that the entry lists, or the session's where it says so", async () => {
    const listed = await project({ ...bundled("filesystem"), roots: ["./work"] });
    expect(await run(listed, join(listed.dir, "work/x.txt"))).toContain("the honest file");
    expect(await run(listed, join(listed.dir, ".env"))).not.toContain("canary");
    const ofSession = await project({ roots: "session" });
    expect(await run(ofSession, join(ofSession.dir, ".env"))).toContain("canary");
  });

  it("are the config's `workspaceDir` where it names one, unless the entry says false", async () => {
    const place = await project({}, { workspaceDir: "." });
    await expectSoon(async () => expect(await run(place, join(place.dir, ".env"))).toContain("canary"));
    const none = await project({ roots: false }, { workspaceDir: "." });
    expect(await run(none, join(none.dir, ".env"))).not.toContain("canary");
    expect(await run(none, join(none.dir, "work/x.txt"))).toContain("the honest file");
  });

  it("are the editor's folder for servers that the editor brings", async () => {
    const place = await project();
    const { command, args } = bundled("filesystem");
    const brought = [{ name: "mine", command, args, env: [] }];
    await expectSoon(async () => {
      const [read] = await acp(place, [join(place.dir, "work/x.txt")], brought, "mine__read_text_file");
      expect(read).toContain("the honest file");
    });
  });
});

/** The bundled server asks for its roots after it has answered `initialize`: a call that comes at once may be too early. */
async function expectSoon(expectation: () => Promise<void>): Promise<void> {
  await vi.waitFor(expectation, { timeout: 60_000, interval: 100 });
}

const CALLER = "caller-token-of-the-test-1234567890";

/** Reads the file while the server is told again and again that the client has other roots now. */
async function readWithRoots(place: Workspace, path: string, token?: string): Promise<string> {
  const { child, finished } = place.start(["serve", "--config", place.configFile, "--port", "0", "--json"]);
  let stdout = "";
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
  const url = await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`serve ended: ${(await finished).stderr}`);
    return /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(stdout)?.[0];
  });
  const client = new Client({ name: "test", version: "1" }, { capabilities: { roots: { listChanged: true } } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(place.dir).href }] }));
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const texts: string[] = [];
  for (let attempt = 0; attempt < 15; attempt += 1) {
    const [, answer] = await Promise.all([
      client.sendRootsListChanged(),
      client.callTool({ name: READ, arguments: { path } }),
      client.callTool({ name: "files__list_allowed_directories", arguments: {} }),
    ]);
    texts.push(JSON.stringify(answer));
  }
  await client.close();
  child.kill("SIGTERM");
  await finished;
  return texts.join("\n");
}

describe("[trust-09c] roots of a client at the gateway", () => {
  it("widen nothing for a caller who does not run the hub", async () => {
    const auth = { tokens: [{ token: CALLER, user: "caller", scopes: ["read", "call"] }] };
    const place = await project({}, { http: { auth } });
    expect(await readWithRoots(place, join(place.dir, ".env"), CALLER)).not.toContain("canary");
    expect(await readWithRoots(place, join(place.dir, "work/x.txt"), CALLER)).toContain("the honest file");
  });

  it("reach a server of the user's own hub as they always did, unless its entry says otherwise", async () => {
    const asBefore = await project();
    expect(await readWithRoots(asBefore, join(asBefore.dir, ".env"))).toContain("canary");
    for (const roots of [false, ["./work"]]) {
      const place = await project({ roots });
      expect(await readWithRoots(place, join(place.dir, ".env"))).not.toContain("canary");
      expect(await readWithRoots(place, join(place.dir, "work/x.txt"))).toContain("the honest file");
    }
  });
});
