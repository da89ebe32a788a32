import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runSlashCommand, slashCommands, type SlashResult } from "../../../src/agent/tools/slash-commands.ts";
import { everything } from "../../support/servers.ts";
import { type BenchSession, simpleTool, SkillBench } from "./skill-bench.ts";

let bench: SkillBench;
let agent: BenchSession;
beforeAll(async () => {
  bench = await SkillBench.open(
    {
      review: { body: "Look at $ARGUMENTS twice.", more: ["argument-hint: <file>", "allowed-tools: Read"] },
      quiet: { more: ["user-invocable: false"] },
      say: { more: ["command-dispatch: tool", "command-tool: shout"] },
      whisper: { more: ["command-dispatch: tool", "command-tool: shout", "disable-model-invocation: true"] },
      echo: { more: ["command-dispatch: tool", "command-tool: every__echo"] },
      lost: { more: ["command-dispatch: tool", "command-tool: nowhere"] },
    },
    [simpleTool("shout")],
    { mcpServers: { every: everything() } },
  );
});
afterAll(() => bench[Symbol.asyncDispose]());
beforeEach(() => {
  agent?.session.close();
  agent = bench.session();
});

const run = (text: string): Promise<SlashResult> => runSlashCommand(bench.hub, agent.session, text);
const textOf = (result: SlashResult): string =>
  result.kind === "none" ? "" : result.content.map((block) => String(block["text"])).join("\n");

describe("[agent-06b] slash commands", () => {
  it("are the skills that a user may call, and prompts that one text is enough for", () => {
    const commands = slashCommands(bench.hub, agent.session);
    expect(commands).toContainEqual({ name: "review", description: "Knows all about review.", hint: "<file>" });
    const names = commands.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["say", "whisper", "every:simple-prompt", "every:args-prompt"]));
    expect(names).not.toContain("quiet");
    expect(names).not.toContain("skill-off");
  });

  it("give the skill's instructions to the model, with the arguments, and make it active", async () => {
    const result = await run("/review  src/a.ts and b");
    expect(result.kind).toBe("prompt");
    expect(textOf(result)).toMatch(/^The user runs the skill "review"[^]*Look at src\/a.ts and b twice\./);
    expect(result).toMatchObject({ notice: { level: "warning", hint: "/skill-off review ends it." } });
    expect(agent.names()).not.toContain("shout");
    expect(slashCommands(bench.hub, agent.session).map(({ name }) => name)).toContain("skill-off");
    expect(textOf(await run("/skill-off review"))).toBe('The skill "review" is no longer active.');
    expect(agent.names()).toContain("shout");
    expect(await run("/skill-off review")).toMatchObject({ kind: "answer", isError: true });
  });

  it("of a skill that hands over to a tool are answered without the model, whoever may take it up", async () => {
    const said = await run("/say hello there");
    expect(said).toMatchObject({ kind: "answer", isError: false });
    expect(textOf(said)).toContain('shout ran {"command":"hello there","commandName":"say"');
    expect(textOf(await run("/whisper"))).toContain('"skillName":"whisper"');
    expect(await run("/lost")).toMatchObject({ kind: "answer", isError: true });
    expect(bench.hub.skills.activeList(agent.session)).toEqual([]);
  });

  it("show untrusted text to people as it is, and keep it between markers for the model", async () => {
    const result = await run("/echo hello");
    expect(textOf(result)).not.toContain("<<<");
    expect(result).toMatchObject({
      kind: "answer",
      forModel: [{ text: expect.stringMatching(/^<<<UNTRUSTED_TOOL_RESULT [^]*<<<END_/) }],
    });
  });

  it("take a server's prompt", async () => {
    const result = await run("/every:args-prompt Berlin");
    expect(result.kind).toBe("prompt");
    expect(textOf(result)).toMatch(/wants you to follow it:\n<<<UNTRUSTED_TOOL_RESULT [^]*Berlin/);
    expect(await run("/every:args-prompt")).toMatchObject({ kind: "answer", isError: true });
  });

  it("leave all else to the model", async () => {
    for (const text of ["/etc/passwd is what?", "/quiet", "/ review", "look at /review", "/"]) {
      expect(await run(text)).toEqual({ kind: "none" });
    }
  });
});
