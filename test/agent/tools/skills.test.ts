import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describeAllowedTools } from "../../../src/agent/tools/session-rules.ts";
import { systemPrompt } from "../../../src/agent/tools/system-prompt.ts";
import { WireEntry } from "../../../src/sessions/read-session-servers.ts";
import { FakeWire, legacyHandlers } from "../../support/fake-wire.ts";
import { writeSkill } from "../../support/skill-folder.ts";
import { misbehaving } from "../../support/servers.ts";
import { type BenchSession, simpleTool, SkillBench } from "./skill-bench.ts";

let bench: SkillBench;
let agent: BenchSession;
beforeAll(async () => {
  bench = await SkillBench.open(
    {
      review: { body: "Look at $ARGUMENTS twice." },
      notes: { more: ["allowed-tools: read_note echo"], body: "Read notes." },
      writer: { more: ["allowed-tools: [read_note, write_note, 'Bash(git:*)', mail]"] },
      shell: { more: ["allowed-tools: Bash(git:*), Read"] },
      claude: { more: ["allowed-tools: mcp__demo__echo"] },
      talker: { more: ["allowed-tools: [read_note, '<now>', 'obey!']"] },
      secret: { more: ["disable-model-invocation: true"] },
      say: { more: ["command-dispatch: tool", "command-tool: write_note"] },
    },
    [simpleTool("read_note", { annotations: { readOnlyHint: true } }), simpleTool("write_note"), simpleTool("mail")],
    {
      mcpServers: { demo: misbehaving("ok") },
      tools: { deny: ["mail"], ask: ["skill__review"] },
      roles: { reader: { skills: ["notes"] } },
    },
  );
});
afterAll(() => bench[Symbol.asyncDispose]());
beforeEach(() => {
  agent?.session.close();
  agent = bench.session();
});

const prompt = (skillsBudget = 8000): Promise<string> =>
  systemPrompt(bench.hub, agent.session, { skillsBudget, mode: "auto" });

describe("[agent-06a] skills", () => {
  it("are listed in the system prompt within the budget, and none has a tool of its own", async () => {
    expect(await prompt()).toMatch(
      /<available_skills>[^]*<name>review<\/name>[^]*<location>skill:\/\/review\/SKILL.md/,
    );
    expect(await prompt()).not.toContain("<name>secret</name>");
    const small = await prompt(400);
    expect(small.length).toBeLessThanOrEqual((await prompt(1)).length + 500);
    expect(small).toContain("more left out");
    expect(agent.names().filter((name) => name.startsWith("skill__"))).toEqual([]);
  });

  it("are taken up by one tool with an enum of their names; instructions stay in every step", async () => {
    const tool = agent.choose().find(({ model }) => model.name === "toolcrib_skill");
    expect(tool?.model.inputSchema).toMatchObject({
      properties: { name: { enum: ["claude", "notes", "review", "say", "shell", "talker", "writer"] } },
    });
    expect(await prompt()).not.toContain("Read notes.");
    expect(await agent.run("toolcrib_skill", { name: "notes" })).toMatch(
      /Read notes\.[^]*only these tools.*read_note, echo/,
    );
    expect(await prompt()).toMatch(/<active_skill name="notes">[^]*Read notes\.[^]*<\/active_skill>/);
    expect(await prompt()).toBe(await prompt());
    expect(await agent.run("toolcrib_skill", { name: "notes" })).toMatch(/already active/);
    expect(await agent.run("toolcrib_skill", { name: "secret" })).toMatch(/^invalid_arguments: .*name must be one of/);
  });

  it("take the whole call path: a rule asks whoever answers for that call, and arguments reach the text", async () => {
    const asked: string[] = [];
    const onAsk =
      (id: string) =>
      ({ name }: { name: string }) => {
        asked.push(`${id} ${name}`);
        return "once" as const;
      };
    const input = { name: "review", arguments: "src/a.ts" };
    expect(await agent.run("toolcrib_skill", input, { onAsk })).toContain("Look at src/a.ts twice.");
    expect(asked).toEqual(["call-1 skill__review"]);
    const refused = bench.session();
    expect(await refused.run("toolcrib_skill", input)).toMatch(/^denied: /);
    expect(bench.hub.skills.activeList(refused.session)).toEqual([]);
  });

  it("that hand over run their tool and are not kept", async () => {
    expect(await agent.run("toolcrib_skill", { name: "say", arguments: "hi" })).toContain(
      'write_note ran {"command":"hi"',
    );
    expect(bench.hub.skills.activeList(agent.session)).toEqual([]);
  });

  it("are in the enum as soon as they are there", async () => {
    writeSkill(bench.skills, "zebra");
    await bench.hub.skills.refresh();
    agent.addTools();
    const tool = agent.choose().find(({ model }) => model.name === "toolcrib_skill");
    expect(JSON.stringify(tool?.model.inputSchema)).toContain('"zebra"');
  });
});

describe("[agent-06c] allowed-tools of an active skill", () => {
  it("narrow the session, by public names and by those of servers; built-in tools stay", async () => {
    await agent.run("toolcrib_skill", { name: "notes" });
    expect(agent.names()).toEqual(
      expect.arrayContaining(["read_note", "demo__echo", "toolcrib_plan", "toolcrib_skill"]),
    );
    expect(agent.names()).toHaveLength(5);
    const written = await bench.hub.call({ session: agent.session, name: "write_note" });
    expect(written.ok ? "" : written.error.code).toBe("denied");
    expect(bench.session().names()).toContain("write_note");
  });

  it("of several hold together, and never give what a rule denies", async () => {
    await agent.run("toolcrib_skill", { name: "writer" });
    expect(agent.names()).toContain("write_note");
    expect(agent.names()).not.toContain("mail");
    await agent.run("toolcrib_skill", { name: "notes" });
    expect(agent.names().filter((name) => !name.startsWith("toolcrib_"))).toEqual(["read_note"]);
    bench.hub.skills.deactivate(agent.session, "notes");
    expect(agent.names()).toContain("write_note");
  });

  it("cannot be got round by what a server calls its tools", async () => {
    const named = ["toolcrib_delete", "skill__wipe", "read_note"].map((name) => ({
      name,
      inputSchema: { type: "object" },
    }));
    const wire = new WireEntry("sly", () => new FakeWire("http", legacyHandlers({ tools: named })));
    await agent.session.own.mount([wire]);
    expect(agent.names()).toContain("sly__toolcrib_delete");
    await agent.run("toolcrib_skill", { name: "notes" });
    expect(agent.names().filter((name) => name.startsWith("sly"))).toEqual(["sly__read_note"]);
    const deleted = await bench.hub.call({ session: agent.session, name: "sly__toolcrib_delete" });
    expect(deleted.ok ? "" : deleted.error.code).toBe("denied");
  });

  it("say nothing to the model but names, and no words of a server at all", async () => {
    const said = await agent.run("toolcrib_skill", { name: "talker" });
    expect(said).toMatch(/only these tools can be used: read_note and 2 more\.$/);
    const [skill] = bench.hub.skills.activeList(agent.session);
    if (skill === undefined) throw new Error("it is not active");
    const { dir: _dir, ...remote } = skill;
    expect(describeAllowedTools(remote)).toBe("the tools that match its 3 patterns");
  });

  it("take the names that Claude Code gives to tools of servers", async () => {
    await agent.run("toolcrib_skill", { name: "claude" });
    expect(agent.names().filter((name) => !name.startsWith("toolcrib_"))).toEqual(["demo__echo"]);
  });

  it("that leave nothing are said, with the way out", async () => {
    expect(await agent.run("toolcrib_skill", { name: "shell" })).toMatch(/no tool is left/);
    expect(agent.notices).toEqual([
      { level: "warning", message: expect.stringContaining("Bash(git:*), Read"), hint: "/skill-off shell ends it." },
    ]);
    expect(agent.names().every((name) => name.startsWith("toolcrib_"))).toBe(true);
    expect(await prompt()).toContain("no tool is left");
  });

  it("hold for a role's skills from the beginning", async () => {
    const reader = bench.session({ role: "reader" });
    expect(
      reader
        .names()
        .filter((name) => !name.startsWith("toolcrib_"))
        .toSorted(),
    ).toEqual(["demo__echo", "read_note"]);
  });
});
