/** `skill update` for skills that were installed, and what is left of a run that is killed at its end. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { put, treeOf, writeSkill } from "../hub/install/skills.ts";
import { environment, furnished, run, runReal } from "./furnished-home.ts";

type Place = ReturnType<typeof furnished>;

const COPIES = [".kiro/skills/notes", ".agents/skills/notes"];

async function installed(): Promise<Place> {
  const place = furnished();
  writeSkill(place.dir, "notes");
  expect((await run(place, ["install", "notes", "--client", "kiro,codex"])).code).toBe(0);
  return place;
}

const textIn = (place: Place, folder: string): string => readFileSync(join(place.home, folder, "SKILL.md"), "utf8");

describe("skill update of what was installed", () => {
  it("[skill-06b] [skill-12b] renews the clients' copies and the lock file, so that it can be installed again", async () => {
    const place = await installed();
    writeSkill(place.dir, "notes", [], "# Newer");
    rmSync(join(place.dir, "notes/scripts"), { recursive: true });
    const before = treeOf(place.home);
    expect((await run(place, ["update", "--dry-run"])).code).toBe(0);
    expect(treeOf(place.home)).toEqual(before);

    const done = (await run(place, ["update", "--json"])).json<{ copies: object; updated: { digest: string }[] }>();
    expect(done.copies).toEqual({ renewed: COPIES.map((path) => join(place.home, path)), kept: [] });
    for (const path of COPIES) {
      expect(textIn(place, path)).toContain("# Newer");
      expect(existsSync(join(place.home, path, "scripts"))).toBe(false);
    }
    const digest = done.updated[0]?.digest ?? "none";
    for (const file of ["toolcrib-skills.lock", "installed.json"]) {
      expect(readFileSync(join(place.toolcribHome, file), "utf8")).toContain(digest);
    }
    expect((await run(place, ["install", "notes", "--client", "kiro"])).code).toBe(0);
    expect((await run(place, ["remove", "notes", "--json"])).json()).toMatchObject({ kept: [] });
    for (const path of COPIES) expect(existsSync(join(place.home, path))).toBe(false);
  });

  it("[skill-06b] leaves a copy that was edited, says so, and does not bring back one that was taken away", async () => {
    const place = await installed();
    put(join(place.home, COPIES[0] ?? "", "mine.md"), "mine");
    rmSync(join(place.home, COPIES[1] ?? ""), { recursive: true });
    writeSkill(place.dir, "notes", [], "# Newer");
    const done = await run(place, ["update"]);
    expect(done.code).toBe(0);
    expect(done.stderr).toContain(".kiro/skills/notes was edited since it was installed and was kept");
    expect(textIn(place, COPIES[0] ?? "")).not.toContain("# Newer");
    expect(existsSync(join(place.home, COPIES[1] ?? ""))).toBe(false);
    expect((await run(place, ["list", "--json"])).json()).toMatchObject([{ outdated: false }]);

    writeSkill(place.dir, "notes", [], "# Newest");
    expect((await run(place, ["update", "--force"])).code).toBe(0);
    expect(textIn(place, COPIES[0] ?? "")).toContain("# Newest");
  });

  it("[skill-06b] copies catch up with what was imported meanwhile", async () => {
    const place = await installed();
    writeSkill(place.dir, "notes", [], "# Newer");
    expect((await run(place, ["import", "notes"])).code).toBe(0);
    expect(textIn(place, COPIES[0] ?? "")).not.toContain("# Newer");
    expect((await run(place, ["update"])).code).toBe(0);
    for (const path of COPIES) expect(textIn(place, path)).toContain("# Newer");
    expect((await run(place, ["install", "notes"])).code).toBe(0);
  });

  it("[skill-06c] changes nothing where one of the files cannot be written", async () => {
    const place = await installed();
    put(join(place.toolcribHome, "toolcrib-skills.lock"), "{ no lock");
    writeSkill(place.dir, "notes", [], "# Newer");
    const before = treeOf(place.home);
    const failed = await run(place, ["update", "--json"]);
    expect(failed.code).toBe(1);
    expect(failed.json()).toMatchObject({ failed: [{ id: "skill-notes", code: "invalid_config" }] });
    expect(treeOf(place.home)).toEqual(before);
  });
});

describe("[skill-11e] a run that is killed when all but the last stroke is done", () => {
  it.each([
    ["an update", ["update"]],
    ["a renewed install", ["install", "notes", "--client", "kiro", "--force"]],
    ["a first install", ["install", "other", "--client", "kiro"]],
    ["a removal", ["remove", "notes"]],
  ])("%s is taken back, the registry included", async (_what, args) => {
    const place = await installed();
    writeSkill(place.dir, "notes", [], "# Newer");
    writeSkill(place.dir, "other");
    const changeSet = pathToFileURL(resolve(import.meta.dirname, "../../src/files/change-set/change-set.ts"));
    const hook = put(
      join(place.dir, "die.mjs"),
      `import { ChangeSet } from ${JSON.stringify(changeSet)};
       ChangeSet.prototype.done = async () => { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); };`,
    );
    const before = treeOf(place.home);
    const { finished } = place.start(["skill", ...args], {
      env: environment(place),
      nodeArgs: ["--import", hook],
    });
    expect((await finished).code).toBe(null);
    expect(treeOf(place.home)).not.toEqual(before);
    const list = await runReal(place, ["list"]);
    expect(list.code).toBe(0);
    expect(list.stderr).toContain("had left half changed");
    expect(treeOf(place.home)).toEqual(before);
    const digests = (await run(place, ["list", "--json"])).json<{ digest: string }[]>().map(({ digest }) => digest);
    expect(digests).toHaveLength(1);
    expect(readFileSync(join(place.toolcribHome, "toolcrib-skills.lock"), "utf8")).toContain(digests[0]);
  });
});
