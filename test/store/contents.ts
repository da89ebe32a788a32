/** A store with something in every part of it, and all of it read back. */
import type { Store } from "../../src/store/store.ts";
import { approval, auditBlock, conversation, pin, session } from "./samples.ts";

export async function fill(store: Store): Promise<void> {
  await store.servers.insert({ id: "files", entry: { command: "npx" }, source: "api" });
  await store.servers.insert({ id: "git\0", entry: { url: "https://example.com" }, source: "/etc/mcp-servers.json" });
  await store.skills.change([{ id: "notes", manifest: { name: "notes", text: "\0 é" } }], []);
  await store.pins.change("/lock", [pin("files", "read"), pin("files", "\ud800")], []);
  await store.approvals.put(approval("1"));
  await store.sessions.put([session("1", { owner: true, taint: { by: "web" } })]);
  for (let line = 0; line < 3000; line += 1000) await store.audit.append(auditBlock("a.jsonl", line, 1000));
  await store.sealed.put({ name: "T", nonce: "bg==", ciphertext: "eA==", tag: "dA==", keyId: "k", updatedAt: "2026" });
  await store.conversations.put(conversation("talk", { title: "é\0", facts: { mode: "ask" } }));
  await store.conversations.append(
    "talk",
    0,
    Array.from({ length: 40 }, (_, n) => ({ role: "user", content: [{ type: "text", text: `\0 ${n}` }] })),
  );
  await store.taints.change("memory notes", () => ({ origins: [{ server: "web", read: ["\0 é"] }], clearedAt: 1 }));
  await store.settings.set("audit.days", "30");
}

export async function contentsOf(store: Store): Promise<unknown> {
  return {
    servers: await store.servers.list(),
    skills: await store.skills.list(),
    pins: await store.pins.list("/lock"),
    approvals: await store.approvals.list({ limit: 100 }),
    sessions: await store.sessions.list({ limit: 100 }),
    audit: await store.audit.textOf("a.jsonl"),
    blocks: await store.audit.blocks(),
    files: await store.audit.files(),
    sealed: await store.sealed.get("T"),
    conversations: await store.conversations.list({ limit: 100 }),
    messages: await store.conversations.messages("talk"),
    taints: await store.taints.list("memory "),
    setting: await store.settings.get("audit.days"),
  };
}
