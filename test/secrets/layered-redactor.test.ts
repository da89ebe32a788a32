import { describe, expect, it } from "vitest";
import { Redactor } from "../../src/secrets/redactor.ts";
import { LiteralSecrets } from "../../src/secrets/secrets.ts";

describe("a redactor over another", () => {
  it("masks what both know, and teaches the other nothing", () => {
    const base = new Redactor();
    base.addCredential("hub-secret-1");
    const own = new Redactor(base);
    expect(own.hasValues).toBe(false);
    own.addCredential("own-secret-2");
    expect(own.hasValues).toBe(true);
    const text = "hub-secret-1 and own-secret-2";
    for (const masked of [own.mask(text), own.maskAll({ text }).text, own.maskContent([text])[0] ?? ""]) {
      expect(masked).not.toMatch(/secret-[12]/);
    }
    expect(base.mask(text)).toContain("own-secret-2");
    base.addCredential("hub-secret-3");
    expect(own.maskContent("hub-secret-3")).not.toContain("secret");
  });
});

describe("literal secrets", () => {
  it("stand for themselves, whatever they look like", async () => {
    const secrets = new LiteralSecrets({ env: { HOME: "/here" } });
    for (const text of ["${HOME}", "secret://env/HOME", "${broken", ""]) {
      expect(await secrets.resolve(text)).toEqual({ value: text, looked: [] });
    }
    expect(await secrets.resolve("$${x}")).toEqual({ value: "${x}", looked: [] });
  });
});
