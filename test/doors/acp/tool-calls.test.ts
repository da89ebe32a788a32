import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { boundedOutput, editDiffs, rewriteDiff, stripMarkers } from "../../../src/doors/acp/tool-calls.ts";
import { Notices, Updates } from "../../../src/doors/acp/updates.ts";
import { wrapUntrusted } from "../../../src/guard/wrap-untrusted.ts";
import { isInside } from "../../../src/doors/acp/workspace.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { writeSkill } from "../../support/skill-folder.ts";
import { misbehaving } from "../../support/servers.ts";
import { acpOn, calls, readOnly, says, tool } from "./acp-bench.ts";
import { eventually } from "../../support/eventually.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-acp-calls-"));
const workspace = { cwd, additionalDirectories: [] };

describe("[acp-12a] tool calls", () => {
  it("are told from the wish to the result, with title, kind, files, input and output", async () => {
    const { client, model } = await acpOn({ tools: [tool("read_notes", { ...readOnly, label: "Read notes" })] });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["read_notes", { path: "notes.txt", line: 3 }]), says("ok"));
    await client.prompt(sessionId, "read");
    const [first] = client.of("tool_call");
    expect(first).toMatchObject({
      toolCallId: "call-read_notes-0",
      title: "Read notes notes.txt",
      kind: "read",
      status: "pending",
      locations: [{ path: join(cwd, "notes.txt"), line: 3 }],
      rawInput: { path: "notes.txt", line: 3 },
    });
    const updates = client.of("tool_call_update");
    expect(updates.map(({ status }) => status)).toEqual(["in_progress", "completed"]);
    expect(updates.at(-1)).toMatchObject({
      content: [{ type: "content", content: { type: "text", text: expect.stringContaining("read_notes") } }],
      rawOutput: expect.anything(),
    });
  });

  it("are failed if the tool says so, if it is refused, and if there is none of that name", async () => {
    const fails = tool("fails", {
      ...readOnly,
      execute: async () => ({ content: [{ type: "text", text: "No disk." }], isError: true }),
    });
    const { client, model } = await acpOn({ tools: [fails, tool("change")], permit: () => "reject_once" });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["fails"], ["change"], ["nobody"]), says("ok"));
    await client.prompt(sessionId, "go");
    const last = new Map(client.of("tool_call_update").map((update) => [update.toolCallId, update]));
    for (const id of ["call-fails-0", "call-change-1", "call-nobody-2"])
      expect(last.get(id)).toMatchObject({ status: "failed" });
    expect(last.get("call-fails-0")?.content).toMatchObject([{ content: { text: "No disk." } }]);
  });

  it("show progress, images and resources", async () => {
    const content = [
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "resource_link", uri: "file:///x.txt", name: "x" },
      { type: "hologram" },
    ];
    const draws = tool("draws", {
      ...readOnly,
      execute: async (_id, _params, _signal, onUpdate) => {
        onUpdate?.({ content: [{ type: "text", text: "half" }] });
        return { content };
      },
    });
    const { client, model } = await acpOn({ tools: [draws] });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["draws"]), says("ok"));
    await client.prompt(sessionId, "draw");
    const updates = client.of("tool_call_update");
    expect(updates.some((update) => JSON.stringify(update.content)?.includes("half"))).toBe(true);
    expect(updates.at(-1)?.content?.[0]).toMatchObject({ type: "content", content: { type: "image" } });
  });

  it("have a diff where the arguments give one", async () => {
    const { client, model } = await acpOn({ tools: [tool("edit_file"), tool("write_file")] });
    const { sessionId } = await client.newSession(cwd);
    writeFileSync(join(cwd, "b.txt"), "old b");
    model.will(
      calls(
        ["edit_file", { path: "a.txt", edits: [{ oldText: "one", newText: "two" }] }],
        ["write_file", { path: "b.txt", content: "new b" }],
      ),
      says("ok"),
    );
    await client.prompt(sessionId, "edit");
    const diffs = client.of("tool_call").flatMap(({ content }) => content ?? []);
    expect(diffs).toEqual([
      { type: "diff", path: join(cwd, "a.txt"), oldText: "one", newText: "two" },
      { type: "diff", path: join(cwd, "b.txt"), oldText: "old b", newText: "new b" },
    ]);
    expect(client.permissions[0]?.toolCall.content?.[0]).toMatchObject({ type: "diff" });
  });
});

describe("[acp-12a] what people read", () => {
  const wrapped = (text: string) => wrapUntrusted(text, { id: "abcdefgh1234", server: "web", tool: "look" });

  it("has no marks for models, wherever they stand, and is bounded", async () => {
    const content = [
      { type: "text", text: `Cut.\n${wrapped("one\n\ntwo")}\nRead on.` },
      { type: "text", text: `${wrapped("inner")} ${"x".repeat(5000)}` },
    ];
    const look = tool("look", { ...readOnly, execute: async () => ({ content, details: { own: 1 } }) });
    const { client, model } = await acpOn({ tools: [look], config: { agent: { resultBytes: 2000 } } });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["look"]), says("ok"));
    await client.prompt(sessionId, "go");
    const end = client.of("tool_call_update").at(-1);
    expect(end?.content?.[0]).toMatchObject({ content: { text: "Cut.\none\n\ntwo\nRead on." } });
    expect(JSON.stringify(end?.rawOutput)).not.toContain("UNTRUSTED");
    expect(JSON.stringify(end?.rawOutput).length).toBeLessThan(2500);
    const cut = boundedOutput({ page: [wrapped("inner")], long: "x".repeat(5000) }, 2000);
    expect(cut).toMatchObject({ truncated: true, note: expect.stringContaining("bytes") });
    expect(JSON.stringify(cut).length).toBeLessThan(2500);
    expect(boundedOutput({ page: [wrapped("inner")] }, 1000)).toEqual({ page: ["inner"] });
    expect(stripMarkers(`<<<UNTRUSTED_TOOL_RESULT broken>>>`)).toContain("broken");
  });

  it("tells of repeated notices once, on a line of its own, and with nothing in it that a server formatted", async () => {
    const sent: string[] = [];
    const note = async (update: { content?: { text?: string }; title?: string }) =>
      void sent.push(update.title ?? update.content?.text ?? "");
    // Only what it sends is looked at.
    const updates = new Updates(
      { notify: (_m: string, params: { update: object }) => note(params.update) } as never,
      "s",
    );
    const notices = new Notices(updates, { hasPlace: false });
    const lost = { level: "warning", message: 'The server "x" was lost: [click](http://e)\n# now' } as const;
    for (let times = 0; times < 20; times += 1) {
      notices.tell(lost);
      notices.tell({ level: "info", message: 'The server "x" is back.' });
    }
    notices.turnBegins();
    expect(sent).toEqual([
      '> **Note:** The server "x" was lost: \\[click\\](http://e) # now (20 times)\n\n',
      'The server "x" is back. (20 times)\n\n',
    ]);
    await updates.text("In the middle");
    notices.add(lost);
    expect(sent.at(-1)).toMatch(/^\n\n> \*\*Note/);
  });
});

describe("[acp-12a] a session that is loaded", () => {
  it("shows its calls as they were in a mode that hides them, what was typed, and a call that runs", async () => {
    const held = Promise.withResolvers<void>();
    const waits = tool("waits", { ...readOnly, execute: async () => (await held.promise, { content: [] }) });
    const skills = mkdtempSync(join(tmpdir(), "toolcrib-acp-skills-"));
    writeSkill(skills, "greet", { description: "Greets people" });
    const { client, model } = await acpOn({
      tools: [tool("write_note"), waits],
      config: { skills: { dirs: [skills] } },
    });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["write_note", { path: "n.txt" }]), says("ok"));
    await client.prompt(sessionId, "/greet Bob");
    const [told] = client.of("tool_call");
    await client.raw("session/set_mode", { sessionId, modeId: "read-only" });
    model.will(calls(["waits"]), says("ok"));
    const running = client.prompt(sessionId, "wait");
    await eventually(() => client.of("tool_call_update").some(({ toolCallId }) => toolCallId === "call-waits-0"));
    client.updates.length = 0;
    await client.raw("session/load", { sessionId, cwd, mcpServers: [] });
    const { title, kind } = told ?? {};
    expect(client.of("tool_call")).toMatchObject([
      { toolCallId: "call-write_note-0", title, kind },
      { toolCallId: "call-waits-0", status: "in_progress" },
    ]);
    expect(client.of("user_message_chunk").map(({ content }) => content)).toMatchObject([
      { text: "/greet Bob" },
      { text: "wait" },
    ]);
    expect(client.of("tool_call_update").map(({ toolCallId }) => toolCallId)).toEqual(["call-write_note-0"]);
    held.resolve();
    expect(await running).toMatchObject({ stopReason: "end_turn" });
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ toolCallId: "call-waits-0", status: "completed" });
  });
});

describe("[acp-12a] diffs", () => {
  it("know the words of common editors, and nothing else", () => {
    const diff = { type: "diff", path: join(cwd, "a"), oldText: "x", newText: "y" };
    for (const input of [
      { path: "a", old_text: "x", new_text: "y" },
      { file_path: join(cwd, "a"), old_string: "x", new_string: "y" },
      { uri: `file://${join(cwd, "a")}`, old_str: "x", new_str: "y" },
    ])
      expect(editDiffs(input, workspace)).toEqual([diff]);
    expect(editDiffs({ path: "a", edits: [{ oldText: "x" }, "y"] }, workspace)).toEqual([]);
    expect(editDiffs({ uri: "https://example.com/a", old_str: "x", new_str: "y" }, workspace)).toEqual([]);
  });

  it("read files of the workspace only, and say what is new", () => {
    writeFileSync(join(cwd, "same.txt"), "same");
    expect(rewriteDiff({ path: "new.txt", content: "n" }, workspace)).toMatchObject([{ oldText: null, newText: "n" }]);
    expect(rewriteDiff({ path: "same.txt", content: "same" }, workspace)).toEqual([]);
    expect(rewriteDiff({ path: "/etc/hostname", content: "n" }, workspace)).toEqual([]);
    expect(rewriteDiff({ path: ".", content: "n" }, workspace)).toEqual([]);
  });

  it("tell inside from beside", () => {
    const place = { cwd: "/work", additionalDirectories: ["/other"] };
    expect(["/work", "/work/..a", "/other/b"].map((path) => isInside(path, place))).toEqual([true, true, true]);
    expect(["/workshop", "/", "/work/../etc"].map((path) => isInside(path, place))).toEqual([false, false, false]);
  });
});

describe("[acp-12b] permissions", () => {
  it("are asked for what is not read-only, about the call that waits, with choices", async () => {
    const { client, model } = await acpOn({ tools: [tool("change"), tool("look", readOnly)] });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["change", { a: 1 }], ["look"]), says("ok"));
    await client.prompt(sessionId, "go");
    expect(client.permissions).toMatchObject([
      {
        sessionId,
        toolCall: { toolCallId: "call-change-0", rawInput: { a: 1 } },
        options: [{ kind: "allow_once" }, { kind: "allow_always" }, { kind: "reject_once" }, { kind: "reject_always" }],
      },
    ]);
    expect(client.of("tool_call").map(({ toolCallId }) => toolCallId)).toContain("call-change-0");
  });

  it("hold once, or for the session, and end with it", async () => {
    const answers = ["allow_once", "allow_always", "allow_once"];
    const { client, model } = await acpOn({ tools: [tool("change")], permit: () => answers.shift() ?? "reject_once" });
    const { sessionId } = await client.newSession(cwd);
    for (let turn = 0; turn < 4; turn += 1) {
      model.will(calls(["change"]), says("ok"));
      await client.prompt(sessionId, "go");
    }
    expect(client.permissions).toHaveLength(2);
    const other = await client.newSession(cwd);
    model.will(calls(["change"]), says("ok"));
    await client.prompt(other.sessionId, "go");
    expect(client.permissions).toHaveLength(3);
  });

  it("tell the model of a rejection, and one for the session is not asked again", async () => {
    let ran = 0;
    const change = tool("change", { execute: async () => ((ran += 1), { content: [] }) });
    const { client, model } = await acpOn({ tools: [change], permit: () => "reject_always" });
    const { sessionId } = await client.newSession(cwd);
    for (const text of ["one", "two"]) {
      model.will(calls(["change"]), says("ok"));
      await client.prompt(sessionId, text);
      const said = model.steps.at(-1)?.messages.at(-1);
      expect(said).toMatchObject({ role: "tool", results: [{ isError: true }] });
      expect(JSON.stringify(said)).toContain("did not allow");
    }
    expect(client.permissions).toHaveLength(1);
    expect(ran).toBe(0);
  });

  it("say how long a yes holds: for good only where a rule of the config alone asks, and for what the hub has", async () => {
    const config = { tools: { ask: ["change", "own__echo"] } };
    const { client, model } = await acpOn({ config, tools: [tool("change")], permit: () => "allow_always" });
    const own = { name: "own", ...misbehaving("ok"), env: [] };
    const { sessionId } = await client.newSession(cwd, [own]);
    const ask = async (modeId: string, name: string) => {
      await client.raw("session/set_mode", { sessionId, modeId });
      model.will(calls([name, { text: "x" }]), says("ok"));
      await client.prompt(sessionId, "go");
      return client.permissions.splice(0).map(({ options }) => options[1]?.name);
    };
    expect(await ask("ask", "own__echo")).toEqual(["Allow for this session"]);
    expect(await ask("ask", "own__echo")).toEqual([]);
    expect(await ask("ask", "change")).toEqual(["Allow for this session"]);
    const other = await client.newSession(cwd);
    await client.raw("session/set_mode", { sessionId: other.sessionId, modeId: "auto" });
    model.will(calls(["change"]), says("ok"));
    await client.prompt(other.sessionId, "go");
    expect(client.permissions[0]?.options[1]).toMatchObject({ kind: "allow_always", name: "Always allow" });
  });

  it("[shape-02d] last for exactly this call, for these values or for the tool", async () => {
    const config = join(cwd, "scopes.json");
    writeFileSync(config, JSON.stringify({ tools: { ask: ["change(to=*)"] } }));
    const answers = ["allow_always_call", "allow_always_values", "allow_always"];
    const { client, model } = await acpOn({
      config,
      tools: [tool("change")],
      permit: () => answers.shift() ?? "reject_once",
      door: { mode: "auto" },
    });
    const { sessionId } = await client.newSession(cwd);
    const asked = async (args: JsonObject) => {
      model.will(calls(["change", args]), says("ok"));
      await client.prompt(sessionId, "go");
      return client.permissions
        .splice(0)
        .flatMap(({ options }) => options.map(({ optionId, name }) => [optionId, name]));
    };
    const offered = [
      ["allow_once", "Allow once"],
      ["allow_always", "Always allow"],
      ["allow_always_values", "Always allow it with these values"],
      ["allow_always_call", "Always allow exactly this call"],
      ["reject_once", "Reject"],
      ["reject_always", "Reject for this session"],
    ];
    expect(await asked({ to: "ann", text: "a" })).toEqual(offered);
    expect(await asked({ to: "ann", text: "a" })).toEqual([]);
    expect(await asked({ to: "ann", text: "b" })).toEqual(offered);
    expect(await asked({ to: "ann", text: "c" })).toEqual([]);
    expect(await asked({ to: "bob", text: "c" })).toEqual(offered);
    expect(await asked({ to: "eve", text: "c" })).toEqual([]);
    expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({
      tools: {
        ask: [
          "change(to=*)",
          expect.stringMatching(/^!=tool:change\(\*=sha256:[0-9a-f]{64}\)$/),
          '!=tool:change(to="ann")',
          "!=tool:change",
        ],
      },
    });
  });

  it("[shape-02d] offer no values that a rule cannot be made of", async () => {
    const config = join(cwd, "no-values.json");
    writeFileSync(config, JSON.stringify({ tools: { ask: ["change"] } }));
    const { client, model } = await acpOn({ config, tools: [tool("change")], door: { mode: "auto" } });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["change", { to: "ann" }]), says("ok"));
    await client.prompt(sessionId, "go");
    expect(client.permissions[0]?.options.map(({ optionId }) => optionId)).toEqual([
      "allow_once",
      "allow_always",
      "allow_always_call",
      "reject_once",
      "reject_always",
    ]);
  });

  it("are a no if the client cannot be asked", async () => {
    const permit = () => {
      throw new Error("no window");
    };
    const { client, model } = await acpOn({ tools: [tool("change")], permit });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["change"]), says("ok"));
    expect(await client.prompt(sessionId, "go")).toMatchObject({ stopReason: "end_turn" });
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
  });
});

describe("[acp-12c] files through the client", () => {
  const capabilities = { fs: { readTextFile: true, writeTextFile: true } };

  it("are read and written where it offers that, after a yes, and only in the folder of the session", async () => {
    const files = new Map([[join(cwd, "open.txt"), "not saved yet"]]);
    const { client, model } = await acpOn({ capabilities, files });
    const { sessionId } = await client.newSession(cwd);
    model.will(
      calls(
        ["read_text_file", { path: "open.txt" }],
        ["write_text_file", { path: join(cwd, "new.txt"), content: "hello" }],
        ["read_text_file", { path: "/etc/passwd" }],
      ),
      says("ok"),
    );
    await client.prompt(sessionId, "go");
    expect(JSON.stringify(model.steps.at(-1)?.messages.at(-1))).toContain("not saved yet");
    expect(files.get(join(cwd, "new.txt"))).toBe("hello");
    expect(client.permissions).toHaveLength(1);
    const last = new Map(client.of("tool_call_update").map((update) => [update.toolCallId, update]));
    expect(last.get("call-write_text_file-1")).toMatchObject({
      status: "completed",
      content: [{ type: "diff", path: join(cwd, "new.txt"), oldText: null, newText: "hello" }, {}],
    });
    expect(last.get("call-read_text_file-2")).toMatchObject({ status: "failed" });
  });

  it("are not offered otherwise", async () => {
    const { client, model } = await acpOn();
    const { sessionId } = await client.newSession(cwd);
    await client.prompt(sessionId, "go");
    expect(model.tools).not.toContain("read_text_file");
    expect(model.tools).not.toContain("write_text_file");
  });
});
