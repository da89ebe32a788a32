import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { SkillStore } from "../../../src/skills/registry/manifest-store.ts";
import { SkillRegistry } from "../../../src/skills/registry/skill-registry.ts";
import { openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { makeSkill, temporaryFolder, toPut, writeFile } from "./made-skills.ts";

/** Two homes on one store, as two machines have it. */
describe("[scale-08a] the files of skills on another machine", () => {
  let store: Store | undefined;
  afterEach(async () => {
    await store?.close();
  });

  it("are fetched again after a failure; one that is too large to be shared is told of", async () => {
    const root = temporaryFolder();
    const opened = await openStore({ home: join(root, "store") });
    if (opened === undefined) throw new Error("no store");
    store = opened;
    const { skills, settings, place, skillFiles } = opened;
    let isAway = true;
    const get: typeof skillFiles.get = (digest) =>
      isAway ? Promise.reject(new Error("away")) : skillFiles.get(digest);
    const files: Store["skillFiles"] = {
      get,
      put: (digest, bytes) => skillFiles.put(digest, bytes),
      prune: (kept, before) => skillFiles.prune(kept, before),
    };
    const shared: SkillStore = { skills, settings, place, kind: "postgres", skillFiles: files };
    const warnings: string[][] = [[], []];
    const [one, two] = ["one", "two"].map(
      (name, index) =>
        new SkillRegistry(
          join(root, name),
          async () => shared,
          undefined,
          (text) => warnings[index]?.push(text),
        ),
    );
    if (one === undefined || two === undefined) throw new Error("no registries");
    const large = makeSkill(join(root, "source"), "large");
    for (const part of ["a", "b"]) writeFile(join(large, `${part}.bin`), Buffer.alloc(9 * 1024 * 1024, part));
    const small = makeSkill(join(root, "source"), "small");
    await one.put([await toPut(small), await toPut(large)]);
    expect(warnings[0]?.join()).toMatch(/skill large are too large.*Other machines/);

    const found = (await two.list()).find(({ name }) => name === "small");
    if (found === undefined) throw new Error("the other machine knows nothing of it");
    await expect(two.readFile(found, "SKILL.md")).rejects.toMatchObject({ code: "blocked" });
    isAway = false;
    expect(Buffer.from(await two.readFile(found, "SKILL.md")).toString()).toContain("Body.");
    expect(warnings[1]).toEqual([expect.stringMatching(/skill large.*import it here too/)]);
  });
});
