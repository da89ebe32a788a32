/** A hub with skills in a folder, for tests of the agent's tools. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addBuiltInTools } from "../../../src/agent/tools/built-in-tools.ts";
import { type AgentTool, chooseTools, type ToolChoiceOptions } from "../../../src/agent/tools/tool-choice.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Tool } from "../../../src/model/tool.ts";
import type { SessionNotice } from "../../../src/sessions/session-parts.ts";
import type { Session, SessionOptions } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { type SkillText, writeSkill } from "../../support/skill-folder.ts";

export const simpleTool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: `The ${name} tool.`,
  parameters: { type: "object" },
  execute: async (_id, params) => ({ content: [{ type: "text", text: `${name} ran ${JSON.stringify(params)}` }] }),
  ...more,
});

export class SkillBench implements AsyncDisposable {
  readonly hub: Hub;
  readonly skills: string;
  readonly #place: string;

  private constructor(hub: Hub, place: string) {
    this.hub = hub;
    this.#place = place;
    this.skills = join(place, "skills");
  }

  static async open(
    skills: Readonly<Record<string, SkillText>>,
    tools: readonly Tool[],
    config: ConfigInput = {},
  ): Promise<SkillBench> {
    const place = mkdtempSync(join(tmpdir(), "toolcrib-agent-skills-"));
    for (const [name, text] of Object.entries(skills)) writeSkill(join(place, "skills"), name, text);
    const registry = new ToolRegistry();
    for (const tool of tools) registry.register(tool);
    const merged = { ...config, skills: { dirs: [join(place, "skills")] } };
    return new SkillBench(await createHub(merged, { home: join(place, "home"), registry }), place);
  }

  session(options: SessionOptions = {}): BenchSession {
    return new BenchSession(this.hub, this.hub.openSession(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub.close();
    rmSync(this.#place, { recursive: true, force: true });
  }
}

export class BenchSession {
  readonly session: Session;
  readonly notices: SessionNotice[] = [];
  readonly #hub: Hub;

  constructor(hub: Hub, session: Session) {
    this.#hub = hub;
    this.session = session;
    this.addTools();
  }

  addTools(): void {
    addBuiltInTools(this.#hub, this.session, { onPlan: () => {}, onNotice: (notice) => this.notices.push(notice) });
  }

  choose(more: Partial<ToolChoiceOptions> = {}): readonly AgentTool[] {
    const model = { provider: "openai" } as const;
    return chooseTools(this.#hub, this.session, { model, query: "", max: 50, resultBytes: 4096, ...more });
  }

  names(more: Partial<ToolChoiceOptions> = {}): string[] {
    return this.choose(more).map(({ model }) => model.name);
  }

  async run(name: string, input: JsonObject = {}, more: Partial<ToolChoiceOptions> = {}): Promise<string> {
    const found = this.choose(more).find(({ model }) => model.name === name);
    if (found === undefined) return `${name} is not there`;
    const { content } = await found.tool.execute("call-1", input);
    return content.map((block) => String(block["text"])).join("\n");
  }
}
