import { describe, expect, it } from "vitest";
import type { Agent, AgentEvent, ToolCallEvent } from "../../../src/agent/agent-options.ts";
import { markdownRenderer } from "../../../src/cli/run/markdown.ts";
import { runTurn, turnView } from "../../../src/cli/run/show-turn.ts";
import { fakeStreams, outputTo } from "./fake-terminal.ts";

const call = (state: ToolCallEvent["state"], more: Partial<ToolCallEvent> = {}): ToolCallEvent => ({
  type: "tool-call",
  id: "1",
  name: "files__read",
  title: "files: read notes.txt",
  kind: "read",
  server: "files",
  input: { path: "notes.txt" },
  locations: [],
  state,
  ...more,
});

const end = (more: Partial<Extract<AgentEvent, { type: "end" }>> = {}): AgentEvent => ({
  type: "end",
  reason: "done",
  text: "It says hello.",
  usage: { input: 12, output: 3 },
  ...more,
});

const TURN: AgentEvent[] = [
  { type: "thought", text: "I need the file." },
  { type: "text", text: "Let me look." },
  call("pending"),
  call("running"),
  call("running", { progress: { progress: 1, total: 2 } }),
  call("done", { content: [{ type: "text", text: "hello" }] }),
  { type: "plan", entries: [{ content: "Read", priority: "high", status: "completed" }] },
  { type: "notice", level: "warning", message: "The server slow is not there yet." },
  { type: "text", text: "It says " },
  { type: "text", text: "hello.\u001b[31m" },
  end(),
];

async function shown(
  events: readonly AgentEvent[],
  { isTTY = false, json = false, verbose = false, styled = false } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const streams = fakeStreams({ isTTY });
  const out = outputTo(streams, json, styled ? {} : undefined);
  // Only `run` is used.
  const agent = {
    async *run() {
      yield* events;
    },
  } as unknown as Agent;
  const code = await runTurn(agent, "x", {
    out,
    view: turnView(out, { verbose }),
    signal: new AbortController().signal,
  });
  await out.flush();
  await new Promise(setImmediate);
  return { code, ...streams.written() };
}

describe("[joy-14e] Markdown of an answer", () => {
  const ANSWER = [
    "# Two `files`",
    "Read **notes.txt** and `a**b**`, see [the docs](https://example.com/x).",
    "- [ ] first",
    "  * second",
    "> quoted",
    "```ts",
    "const a = **b**; // \u001b[2J",
    "```",
    "snake_case_name and 2 * 3 * 4 stay",
    "the end",
  ].join("\n");

  /** In pieces, which end anywhere. */
  const pieces = (size: number): AgentEvent[] => [
    ...(ANSWER.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []).map((text): AgentEvent => ({ type: "text", text })),
    end(),
  ];

  it("is rendered at a terminal with colours, whatever its pieces", async () => {
    const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`;
    const cyan = (text: string): string => `\u001b[36m${text}\u001b[39m`;
    const dim = (text: string): string => `\u001b[2m${text}\u001b[22m`;
    for (const size of [1, 7, 1000]) {
      const { stdout } = await shown(pieces(size), { isTTY: true, styled: true });
      expect(stdout.split("\n")).toEqual([
        bold("Two files"),
        `Read ${bold("notes.txt")} and ${cyan("a**b**")}, see the docs (https://example.com/x).`,
        "• [ ] first",
        "  • second",
        `${dim("│")} quoted`,
        `  ${cyan("const a = **b**; // \\u{001B}[2J")}`,
        "snake_case_name and 2 * 3 * 4 stay",
        "the end",
        "",
      ]);
    }
  });

  it("stays as it is in a pipe and without colours", async () => {
    expect((await shown([...pieces(9).slice(0, -1), { ...end(), text: ANSWER } as AgentEvent])).stdout).toBe(
      `${ANSWER.replace("\u001b", "\\u{001B}")}\n`,
    );
    expect((await shown(pieces(9), { isTTY: true })).stdout).toBe(`${ANSWER.replace("\u001b", "\\u{001B}")}\n`);
  });

  it("takes time in proportion to its length, whatever marks it has", { retry: 2 }, () => {
    const render = markdownRenderer({ paint: (_style, text) => text });
    const cost = (mark: string, count: number): number => {
      const line = mark.repeat(count);
      const started = performance.now();
      render(line);
      return performance.now() - started;
    };
    for (const mark of ["`", "*", "**a", "[", "[a](", "__", "# ", "> ", "- ", " "]) {
      cost(mark, 20_000);
      const [short, long] = [20_000, 400_000].map((count) => Math.min(...[1, 2, 3].map(() => cost(mark, count))));
      // Quadratic work would be 400 times as much.
      expect(long ?? 0, mark).toBeLessThan(120 * Math.max(short ?? 0, 0.5));
    }
  });
});

describe("[agent-08c] what a turn shows", () => {
  it("in a pipe stdout has the answer alone, stderr the rest", async () => {
    const { code, stdout, stderr } = await shown(TURN);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "It says hello.\n" });
    expect(stderr).toMatch(
      /^Let me look\.\n {2}done {4}files: read notes\.txt {2}\d+ ms\n {2}\[x\] Read\nwarning: The server slow is not there yet\.\n$/,
    );
  });

  it("on a terminal text appears as it comes, a call has a line, and control characters of the model do nothing", async () => {
    const { stdout, stderr } = await shown(TURN, { isTTY: true });
    expect(stdout).toBe("Let me look.\nIt says hello.\\u{001B}[31m\n");
    expect(stderr).toContain("running  files: read notes.txt …  50 %");
    // Clearing a line that has text of the answer on it would take that away.
    expect(stderr).toMatch(/^\r/);
    expect(stderr.split("\r")).toHaveLength(5);
    expect(stderr).toContain("done    files: read notes.txt");
    expect(stderr).not.toContain("I need the file.");
  });

  it("--verbose adds thoughts and tokens", async () => {
    const { stderr } = await shown(TURN, { verbose: true });
    expect(stderr).toMatch(/^I need the file\.\n/);
    expect(stderr).toMatch(/tokens: 12 in, 3 out\n$/);
  });

  it("--json gives each event on a line and nothing else", async () => {
    const { stdout, stderr } = await shown(TURN, { json: true });
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(TURN);
    expect(stderr).toBe("");
  });

  it("says why a call failed or was denied, and how it could be allowed", async () => {
    const denied = { code: "denied", message: "A rule asks.", hint: "Run it on a terminal." } as const;
    const { stderr } = await shown([
      call("failed", { content: [{ type: "text", text: "\nno such file\nmore" }] }),
      call("denied", { id: "2", error: denied }),
      call("cancelled", { id: "3" }),
      end(),
    ]);
    expect(stderr).toContain("failed  files: read notes.txt\n           no such file\n");
    expect(stderr).toContain("denied  files: read notes.txt\n           A rule asks. Run it on a terminal.\n");
    expect(stderr).toContain("stopped files: read notes.txt\n");
  });
});

it("[agent-08c] while a question is open nothing is written over it", async () => {
  const streams = fakeStreams({ isTTY: true });
  const out = outputTo(streams);
  const view = turnView(out, { verbose: false });
  view.show({ type: "text", text: "Wait." });
  view.pause();
  view.show(call("running"));
  view.show(call("done"));
  await new Promise(setImmediate);
  expect(streams.written()).toEqual({ stdout: "Wait.\n", stderr: "" });
  view.resume();
  await new Promise(setImmediate);
  expect(streams.written().stderr).toContain("done    files: read notes.txt");
});

describe("[agent-08c] exit codes of a turn", () => {
  it.each<[string, AgentEvent[], number, string]>([
    [
      "a model that cannot be reached",
      [end({ reason: "error", error: { code: "server_unavailable", message: "Down." } })],
      4,
      "error: Down.",
    ],
    ["a timeout", [end({ reason: "error", error: { code: "timeout", message: "Late." } })], 5, "error: Late."],
    ["a wrong key", [end({ reason: "error", error: { code: "unauthorized", message: "Key." } })], 1, "error: Key."],
    ["a refusal", [end({ reason: "refusal" })], 1, "refused"],
    ["steps used up", [end({ reason: "steps" })], 1, "--max-steps"],
    ["tokens used up", [end({ reason: "tokens" })], 1, "--max-tokens"],
    ["a cut answer", [end({ reason: "length" })], 1, "cut off"],
    ["cancelled", [end({ reason: "cancelled", error: { code: "cancelled", message: "x" } })], 1, "cancelled"],
    ["every call denied", [call("denied"), end()], 3, ""],
    ["one denied and another done", [call("denied"), call("done", { id: "2" }), end()], 0, ""],
  ])("%s", async (_title, events, code, said) => {
    const result = await shown(events);
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(said);
  });
});
