import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesServer, put, writeSkill } from "../hub/install/skills.ts";
import { furnished, run } from "./furnished-home.ts";

const withMcp = ["--with-mcp", "--set", "ROOT=./data"];

describe("skill remove says", () => {
  it("[skill-12c] which files of clients it changed, and who must be restarted", async () => {
    const place = furnished();
    writeSkill(place.dir, "notes", [filesServer()]);
    expect((await run(place, ["install", "notes", ...withMcp, "--client", "cursor,codex"])).code).toBe(0);
    const file = join(place.home, ".cursor/mcp.json");
    const first = await run(place, ["remove", "notes", "--client", "cursor"]);
    expect(first.stdout).toContain(`  files in ${file}`);
    expect(first.stdout).toMatch(/cursor/i);
    expect(first.stdout).not.toMatch(/restart codex/i);
    expect((await run(place, ["remove", "notes", "--json"])).json()).toMatchObject({
      files: [{ file: join(place.home, ".codex/config.toml"), ids: ["files"] }],
      restart: ["Codex CLI"],
    });
  });

  it("[skill-12c] that a server stays that was there before the install", async () => {
    const place = furnished();
    writeSkill(place.dir, "notes", [filesServer()]);
    expect((await run(place, ["install", "notes", ...withMcp])).code).toBe(0);
    expect((await run(place, ["remove", "notes"])).stderr).not.toContain("stays");
    expect((await run(place, ["install", "notes"])).code).toBe(0);
    const again = await run(place, ["remove", "notes", "--with-servers"]);
    expect(again.stderr).toContain("Keeping the server files, which existed before this install");
    expect(readFileSync(join(place.toolcribHome, "toolcrib.json"), "utf8")).toContain('"files"');
  });

  it("[skill-06c] [skill-12c] which ids there are for a name that several skills have, and removes none", async () => {
    const place = furnished();
    writeSkill(place.dir, "one/notes");
    put(
      join(place.dir, "two/notes/SKILL.md"),
      "---\nname: notes\ndescription: Another.\nmetadata:\n  openclaw: {emoji: x}\n---\n\n# Use\n",
    );
    expect((await run(place, ["import", "one/notes"])).code).toBe(0);
    expect((await run(place, ["import", "two/notes"])).code).toBe(0);
    const ids = (await run(place, ["list", "--json"])).json<{ id: string }[]>().map(({ id }) => id);
    expect(ids).toHaveLength(2);
    const refused = await run(place, ["remove", "notes"]);
    expect(refused.code).toBe(2);
    for (const id of ids) expect(refused.stderr).toContain(id);
    expect((await run(place, ["list", "--json"])).json()).toHaveLength(2);
    expect((await run(place, ["remove", ids[0] ?? ""])).code).toBe(0);
    expect((await run(place, ["remove", "notes", "--json"])).json()).toMatchObject({ id: ids[1] });
    expect(existsSync(join(place.toolcribHome, "installed.json"))).toBe(false);
  });
});
