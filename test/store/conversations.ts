/** What holds for the conversations of every store. */
import { describe, expect, it } from "vitest";
import type { OpenStoreOptions } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { conversation } from "./samples.ts";

interface Stage {
  store(): Store;
  /** The same database as another process has it. */
  open(options?: Partial<OpenStoreOptions>): Promise<Store>;
}

const said = (text: string): { role: string; content: unknown[] } => ({
  role: "user",
  content: [{ type: "text", text }],
});

export function conversationBehaviour({ store, open }: Stage): void {
  describe("conversations", () => {
    it("[agent-09a] keep their messages in order, for other processes too", async () => {
      const { conversations } = store();
      const full = conversation("a", { title: "Hello", cwd: "/work", user: "Ada", facts: { mode: "ask", n: [1] } });
      await conversations.put(full);
      const messages = Array.from({ length: 40 }, (_, n) => said(`${n} \0 \ud800`));
      await conversations.append("a", 0, messages.slice(0, 39));
      await conversations.put({ ...full, title: "Other" });
      const other = (await open()).conversations;
      await other.append("a", 39, messages.slice(39));
      expect(await conversations.messages("a")).toEqual(messages);
      expect(await other.get("a")).toMatchObject({ title: "Other", facts: full.facts, user: "Ada" });
      expect(await other.get("b")).toBeUndefined();
      expect(await other.messages("b")).toEqual([]);
    });

    it("[agent-09a] take the messages of one writer where two write at once", async () => {
      const [here, there] = [store().conversations, (await open()).conversations];
      await here.put(conversation("a"));
      await here.append("a", 0, [said("one")]);
      const results = await Promise.allSettled([
        here.append("a", 1, [said("here"), said("here 2")]),
        there.append("a", 1, [said("there")]),
        here.append("a", 1, [said("again")]),
      ]);
      const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
      expect(refused).toHaveLength(2);
      for (const error of refused) {
        expect(error).toMatchObject({ code: "conflict", hint: expect.stringContaining("Open it again") });
      }
      await expect(there.append("a", 9, [said("too far")])).rejects.toMatchObject({ code: "conflict" });
      await expect(there.append("gone", 0, [said("nobody")])).rejects.toMatchObject({ code: "not_found" });
      expect(await there.messages("gone")).toEqual([]);
    });

    it("[agent-09a] merge the facts of writers, and do not come back once they are removed", async () => {
      const [here, there] = [store().conversations, (await open()).conversations];
      await here.put(conversation("a", { facts: { mode: "ask", old: 1 } }));
      await Promise.all([
        ...["b", "c", "d"].map((key) => here.change("a", { facts: { [key]: 1 } })),
        ...["e", "f"].map((key) => there.change("a", { facts: { [key]: 1, old: undefined } })),
      ]);
      expect(await there.change("a", { title: "Named" })).toMatchObject({ title: "Named", facts: { mode: "ask" } });
      expect((await here.get("a"))?.facts).toEqual({ mode: "ask", b: 1, c: 1, d: 1, e: 1, f: 1 });
      await there.remove("a");
      await expect(here.change("a", { facts: { mode: "auto" } })).rejects.toMatchObject({ code: "not_found" });
      expect(await here.get("a")).toBeUndefined();
    });

    it("[agent-09a] are listed by their last use, and forgotten with their messages", async () => {
      const clock = new FakeClock();
      const { conversations } = await open({ clock });
      const at = new Date(clock.now()).toISOString();
      for (const id of ["a", "b", "c", "d"]) {
        await conversations.put(
          conversation(id, { cwd: id < "c" ? "/one" : "/two", updatedAt: at, door: id === "d" ? "cli" : "acp" }),
        );
      }
      await clock.advance(60_000);
      await conversations.append("b", 0, [said("later")]);
      const first = await conversations.list({ limit: 2 });
      expect(first).toMatchObject({ total: 4, entries: [{ id: "b" }, { id: "d" }] });
      const rest = await conversations.list({ limit: 9, ...(first.nextCursor && { cursor: first.nextCursor }) });
      expect(rest.entries.map(({ id }) => id)).toEqual(["c", "a"]);
      expect(rest.nextCursor).toBeUndefined();
      expect((await conversations.list({ limit: 9, cwd: "/one" })).entries.map(({ id }) => id)).toEqual(["b", "a"]);
      expect(await conversations.list({ limit: 9, door: "cli" })).toMatchObject({ total: 1, entries: [{ id: "d" }] });

      await conversations.append("b", 1, [said("more")]);
      expect(await conversations.prune(new Date(clock.now()).toISOString())).toBe(3);
      expect(await conversations.messages("b")).toHaveLength(2);
      expect(await conversations.remove("b")).toBe(true);
      expect(await conversations.remove("b")).toBe(false);
      expect(await conversations.messages("b")).toEqual([]);
    });
  });
}
