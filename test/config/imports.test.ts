import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { codes, Workplace } from "./support.ts";

const server = (command: string): object => ({ command });

describe("imports", () => {
  it("come after the file itself, and the home's list comes last", async () => {
    const place = new Workplace();
    place.write("other/claude_desktop_config.json", { mcpServers: { a: server("import"), b: server("import") } });
    place.write("home/etc/mcp-servers.json", {
      servers: [
        { id: "b", ...server("etc") },
        { id: "c", transport: "stdio", ...server("etc") },
      ],
    });
    const file = place.write("toolcrib.json", {
      mcpServers: { a: server("own") },
      import: ["./other/claude_desktop_config.json"],
    });
    const { servers, warnings, config } = await place.load({ file });
    expect(servers.map(({ id, command, origin, baseDir }) => [id, command, origin.dialect, baseDir])).toEqual([
      ["a", "own", "toolcrib", place.dir],
      ["b", "import", "claude", join(place.dir, "other")],
      ["c", "etc", "list", join(place.home, "etc")],
    ]);
    expect(Object.keys(config.mcpServers)).toEqual(["a"]);
    const imported = join(place.dir, "other/claude_desktop_config.json");
    expect(warnings.map(({ code, file: at, message }) => [code, at, message])).toEqual([
      ["duplicate_id", imported, `the server "a" is also in ${file}, which counts`],
      ["duplicate_id", join(place.home, "etc/mcp-servers.json"), `the server "b" is also in ${imported}, which counts`],
    ]);
  });

  it("[gate-07a] are named with the files that the config was made of, there or not", async () => {
    const place = new Workplace();
    place.write("there.json", { mcpServers: {} });
    const file = place.write("toolcrib.json", { import: ["there.json", "missing.json", "there.json"] });
    const loaded = await place.load({ file });
    const etc = join(place.home, "etc/mcp-servers.json");
    expect(loaded.files).toEqual([file, join(place.dir, "there.json"), join(place.dir, "missing.json"), etc]);
    expect(loaded.inCode).toBe(false);
    expect(await place.load({ config: { import: ["there.json"] } })).toMatchObject({
      files: [join(place.dir, "there.json")],
      inCode: true,
    });
    expect(await place.load()).toMatchObject({ inCode: false });
  });

  it("[spine-05c] reads the home's etc/mcp-servers.json without any config file", async () => {
    const place = new Workplace();
    place.write("home/etc/mcp-servers.json", { servers: [{ id: "c", transport: { type: "stdio", command: "x" } }] });
    expect((await place.load()).servers.map(({ id }) => id)).toEqual(["c"]);
  });

  it("that are missing or broken are warnings, and cost no other server", async () => {
    const place = new Workplace();
    place.write("broken.json", "{ nope");
    place.write("half.json", {
      mcpServers: { bad: { command: 5 }, good: server("x"), old: { command: "x", sandbox: "docker" } },
    });
    place.write("home/etc/mcp-servers.json", "[");
    const file = place.write("toolcrib.json", {
      import: ["gone.json", "broken.json", "./half.json", "half.json", "~/gone.json"],
    });
    const { servers, warnings } = await place.load({ file, env: { HOME: place.home } });
    expect(servers.map(({ id }) => id)).toEqual(["good"]);
    expect(warnings.every(({ severity }) => severity === "warning")).toBe(true);
    expect([...new Set(codes(warnings))]).toEqual([
      "missing_import import[0]",
      "syntax ",
      "wrong_value mcpServers.bad.command",
      "wrong_value mcpServers.old.sandbox",
      "missing_import import[4]",
    ]);
    const broken = warnings.filter(({ code }) => code === "syntax").map(({ file: at }) => at);
    expect(new Set(broken)).toEqual(
      new Set([join(place.dir, "broken.json"), join(place.home, "etc/mcp-servers.json")]),
    );
    expect(warnings[0]?.message).toBe(
      `the file ${join(place.dir, "gone.json")} does not exist; nothing is imported from it`,
    );
    expect(warnings.find(({ path }) => path === "mcpServers.bad.command")?.message).toBe(
      "found a number; expected a non-empty string; this server is skipped",
    );
  });

  it("of another Toolcrib config bring its servers only", async () => {
    const place = new Workplace();
    place.write("sub/toolcrib.json", {
      mcpServers: { a: { command: "x", toolPrefix: "" } },
      limits: { servers: 1 },
      import: ["x"],
    });
    const { servers, config, warnings } = await place.load({
      file: place.write("toolcrib.json", { import: ["sub/toolcrib.json"] }),
    });
    expect(servers).toMatchObject([{ id: "a", toolPrefix: "" }]);
    expect(config.limits.servers).toBe(50);
    expect(warnings[0]?.message).toBe("only the servers of an imported config are used; not read: limits, import");
  });
});
