import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { Conversations, fromStoredMessage, toStoredMessage } from "../../src/agent/conversation.ts";
import type { AgentMessage } from "../../src/agent/model/chat-model.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../support/fake-clock.ts";

const said = (text: string): AgentMessage => ({ role: "user", content: [{ type: "text", text }] });
const MEGABYTE = 1024 * 1024;

const EXCHANGE: AgentMessage[] = [
  said("Add the numbers"),
  {
    role: "assistant",
    parts: [
      { type: "thought", text: "Hm.", meta: { signature: "s" } },
      { type: "text", text: "I add." },
      { type: "call", id: "1", name: "add", input: { a: 1, b: [2] } },
    ],
  },
  { role: "tool", results: [{ id: "1", name: "add", content: [{ type: "text", text: "3" }], isError: false }] },
];

const root = mkdtempSync(join(tmpdir(), "toolcrib-conversations-"));
afterAll(() => rmSync(root, { recursive: true }));

for (const kind of ["in memory", "in a store"] as const) {
  describe(`[agent-09a] conversations ${kind}`, () => {
    const clock = new FakeClock();
    let store: Store | undefined;
    let conversations: Conversations;
    beforeEach(async () => {
      if (kind === "in a store") store = await openStore({ home: mkdtempSync(join(root, "home-")), clock });
      conversations = new Conversations(store, clock);
    });
    afterEach(() => store?.close());

    it("are opened as they were left", async () => {
      const begun = conversations.create({ door: "acp", cwd: "/work", user: "Ada" });
      expect(await conversations.open(begun.id)).toBeUndefined();
      await begun.append(EXCHANGE);
      await begun.setFacts({ mode: "ask", model: "a/b" });
      const opened = await conversations.open(begun.id);
      expect(opened?.messages).toEqual(EXCHANGE);
      expect(opened).toMatchObject({ door: "acp", cwd: "/work", user: "Ada", title: "Add the numbers" });
      expect(opened?.facts).toEqual({ mode: "ask", model: "a/b" });
      await opened?.setFacts({ mode: undefined, more: [1] });
      await opened?.append([said("And now?")]);
      const again = await conversations.open(begun.id);
      expect(again?.facts).toEqual({ model: "a/b", more: [1] });
      expect(again?.title).toBe("Add the numbers");
      expect(again?.messages).toHaveLength(4);
      expect(await conversations.remove(begun.id)).toBe(true);
      expect(await conversations.open(begun.id)).toBeUndefined();
    });

    it("refuse what is written after somebody else wrote, and keep the order of their own writes", async () => {
      const here = conversations.create({ door: "cli" });
      await Promise.all([here.append([said("1")]), here.append([said("2")]), here.setFacts({ n: 1 })]);
      const there = await conversations.open(here.id);
      await there?.append([said("3")]);
      const refused = here.append([said("4")]);
      await expect(refused).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("Open it again") });
      expect(here.messages).toEqual([said("1"), said("2")]);
      expect((await conversations.open(here.id))?.messages).toEqual([said("1"), said("2"), said("3")]);
      await conversations.remove(here.id);
      await expect(there?.append([said("5")])).rejects.toMatchObject({ code: "not_found" });
      await expect(here.setFacts({ n: 2 })).rejects.toMatchObject({ code: "not_found" });
      expect(await conversations.open(here.id)).toBeUndefined();
    });

    it("keep the facts of all who write", async () => {
      const here = conversations.create({ door: "cli" });
      await here.setFacts({ mode: "ask", old: 1 });
      const there = await conversations.open(here.id);
      await Promise.all([here.setFacts({ mode: "auto" }), there?.setFacts({ model: "a/b", old: undefined })]);
      expect((await conversations.open(here.id))?.facts).toEqual({ mode: "auto", model: "a/b" });
    });

    it("are listed with those last used first, page by page", async () => {
      const made = [];
      for (const cwd of ["/a", "/b", "/a"]) {
        const each = conversations.create({ door: "acp", cwd });
        await each.append([said(`in ${cwd}`)]);
        made.push(each);
        await clock.advance(1000);
      }
      await made[0]?.append([said("again")]);
      const first = await conversations.list({ limit: 2 });
      expect(first.entries.map(({ id }) => id)).toEqual([made[0]?.id, made[2]?.id]);
      const rest = await conversations.list({ limit: 2, cursor: first.nextCursor });
      expect(rest.entries.map(({ id }) => id)).toEqual([made[1]?.id]);
      expect(rest.nextCursor).toBeUndefined();
      expect((await conversations.list({ cwd: "/a" })).total).toBe(2);
      expect((await conversations.list({ door: "cli" })).entries).toEqual([]);
    });

    it("have the beginning of the first prompt as their title", async () => {
      const long = conversations.create({ door: "cli" });
      expect(long.title).toBeNull();
      await long.append([said(`  line one\n\nline ${"x".repeat(100)}`)]);
      expect(long.title).toBe(`line one line ${"x".repeat(66)}`);
      const command = conversations.create({ door: "cli" });
      await command.append([{ role: "user", content: [{ type: "text", text: "The user calls …" }], said: "/do it" }]);
      expect(command.title).toBe("/do it");
      expect((await conversations.open(command.id))?.messages).toMatchObject([{ said: "/do it" }]);
      const picture = conversations.create({ door: "cli" });
      await picture.append([{ role: "user", content: [{ type: "image", data: "AA==", mimeType: "image/png" }] }]);
      expect(picture.title).toBeNull();
    });
  });
}

describe("[agent-09a] a message in the store", () => {
  it("is kept as it is up to a size, then without its images, then with its texts cut", () => {
    const image = (size: number) => ({ type: "image", data: "A".repeat(size), mimeType: "image/png" });
    const small: AgentMessage = { role: "user", content: [image(MEGABYTE)] };
    expect(fromStoredMessage(toStoredMessage(small))).toEqual(small);
    const large: AgentMessage = {
      role: "tool",
      results: [
        { id: "1", name: "shot", isError: false, content: [{ type: "text", text: "see" }, image(9 * MEGABYTE)] },
      ],
    };
    expect(fromStoredMessage(toStoredMessage(large))).toMatchObject({
      results: [{ content: [{ text: "see" }, { type: "text", text: "[image: image/png, 6.8 MB]" }] }],
    });
    const stored = toStoredMessage(said("y".repeat(9 * MEGABYTE)));
    expect(JSON.stringify(stored).length).toBeLessThan(MEGABYTE);
    expect(JSON.stringify(stored)).toContain("not kept");
    const talk: AgentMessage = {
      role: "assistant",
      parts: [
        { type: "text", text: "z".repeat(9 * MEGABYTE) },
        { type: "call", id: "1", name: "write", input: { text: "w".repeat(MEGABYTE) } },
      ],
    };
    const kept = fromStoredMessage(toStoredMessage(talk));
    expect(JSON.stringify(kept).length).toBeLessThan(MEGABYTE);
    expect(kept).toMatchObject({
      role: "assistant",
      parts: [{ type: "text" }, { type: "call", id: "1", name: "write" }],
    });
  });

  it("is left out where it is none that this program wrote", async () => {
    for (const odd of [{}, { role: "system", content: [] }, { role: "user", content: "text" }, { role: "tool" }]) {
      expect(fromStoredMessage(odd)).toBeUndefined();
    }
    const store = await openStore({ home: mkdtempSync(join(root, "home-")) });
    const conversations = new Conversations(store);
    const begun = conversations.create({ door: "cli" });
    await begun.append([said("1")]);
    await store?.conversations.append(begun.id, 1, [{ role: "odd" }]);
    const opened = await conversations.open(begun.id);
    await opened?.append([said("2")]);
    expect(opened?.messages).toEqual([said("1"), said("2")]);
    expect(await store?.conversations.messages(begun.id)).toHaveLength(3);
    await store?.close();
  });
});
