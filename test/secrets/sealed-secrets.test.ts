import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  keyFile,
  keyFromText,
  type SealedEntry,
  SealedSecrets,
  type SealedValueStore,
  type SealingKey,
} from "../../src/secrets/sealed-secrets.ts";
import { FakeClock } from "../support/fake-clock.ts";

const CANARY = "canary-51d84e607f3a9b2c";

class MapShelf implements SealedValueStore {
  readonly entries = new Map<string, SealedEntry>();
  get = async (name: string): Promise<SealedEntry | undefined> => this.entries.get(name);
  put = async (value: SealedEntry): Promise<void> => void this.entries.set(value.name, value);
  remove = async (name: string): Promise<boolean> => this.entries.delete(name);
}

function sealedWith(key: SealingKey, shelf = new MapShelf()): { sealed: SealedSecrets; shelf: MapShelf } {
  return { sealed: new SealedSecrets({ shelf, key, clock: new FakeClock() }), shelf };
}

function home(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-seal-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function text(value: string, settings = new Map<string, string>()): SealingKey {
  return keyFromText(
    async () => value,
    async (key, fresh) => {
      if (!settings.has(key)) settings.set(key, fresh);
      return settings.get(key) ?? "";
    },
  );
}

describe("[oper-02d] secrets sealed in the store", () => {
  it("come back as they were, and their text is nowhere in what is stored", async () => {
    const { sealed, shelf } = sealedWith(keyFile(home()));
    await sealed.put("a/b", CANARY);
    expect(await sealed.get("a/b")).toBe(CANARY);
    const stored = JSON.stringify([...shelf.entries]);
    expect(stored).not.toContain(CANARY);
    expect(stored).not.toContain(Buffer.from(CANARY).toString("base64"));
    await sealed.put("c", CANARY);
    expect(shelf.entries.get("c")?.ciphertext).not.toBe(shelf.entries.get("a/b")?.ciphertext);
    await sealed.remove("a/b");
    await expect(sealed.get("a/b")).rejects.toThrow("is not in the store");
  });

  it("cannot be passed off as another one, nor be changed", async () => {
    const { sealed, shelf } = sealedWith(keyFile(home()));
    await sealed.put("low", "abc");
    await sealed.put("high", "def");
    const low = shelf.entries.get("low");
    if (low === undefined) throw new Error("not stored");
    shelf.entries.set("high", { ...low, name: "high" });
    await expect(sealed.get("high")).rejects.toThrow("changed or damaged");
    shelf.entries.set("low", { ...low, ciphertext: Buffer.from("xyz").toString("base64") });
    await expect(sealed.get("low")).rejects.toThrow("changed or damaged");
  });

  it.each([
    ["hex", "ab".repeat(32)],
    ["base64", Buffer.alloc(32, 7).toString("base64")],
    ["a passphrase", "correct horse battery staple"],
  ])("have a key of %s, and another one is told apart", async (_, key) => {
    const settings = new Map<string, string>();
    const { sealed, shelf } = sealedWith(text(key, settings));
    await sealed.put("x", CANARY);
    expect(await sealedWith(text(key, settings), shelf).sealed.get("x")).toBe(CANARY);
    const { sealed: wrong } = sealedWith(text("another passphrase", settings), shelf);
    await expect(wrong.get("x")).rejects.toThrow("another key");
    await expect(wrong.get("x")).rejects.not.toThrow(CANARY);
  });

  it("have a key file for its owner alone, made once", async () => {
    const dir = home();
    const file = join(dir, "store.key");
    const keys = await Promise.all(Array.from({ length: 8 }, () => keyFile(dir).made()));
    expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o640);
    await expect(keyFile(dir).made()).rejects.toThrow("other users can read");
    chmodSync(file, 0o600);
    writeFileSync(file, "short\n");
    await expect(keyFile(dir).existing()).rejects.toThrow("contains no key");
    expect(readFileSync(file, "utf8")).toBe("short\n");
  });

  it("are not opened with a fresh key when the file is gone", async () => {
    const dir = home();
    const { sealed, shelf } = sealedWith(keyFile(dir));
    await sealed.put("x", CANARY);
    rmSync(join(dir, "store.key"));
    await expect(sealedWith(keyFile(dir), shelf).sealed.get("x")).rejects.toThrow("key file of the store is gone");
  });
});
