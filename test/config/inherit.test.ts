import { describe, expect, it } from "vitest";
import { describeProject } from "../../src/config/project-config.ts";
import { isTrusted, trustRecordOf } from "../../src/config/project-trust.ts";
import { readProject } from "../../src/config/load-config.ts";
import { toServerEntry } from "../../src/config/server-entry.ts";
import type { ServerSpec } from "../../src/model/server-spec.ts";
import { Workplace } from "./support.ts";

async function specOf(config: object, file = "toolcrib.json"): Promise<ServerSpec | undefined> {
  const place = new Workplace();
  const path = place.write(file, config);
  const { servers } = await place.load({ file: path });
  return servers[0];
}

describe("[counter-08b] `inherit`", () => {
  it("is read as a list under `env` and as a key of its own, in every dialect", async () => {
    const entry = { command: "a", env: { A: "1", inherit: ["HTTPS_PROXY"] } };
    const expected = { env: { A: "1" }, inherit: ["HTTPS_PROXY"] };
    expect(await specOf({ mcpServers: { a: entry } })).toMatchObject(expected);
    expect(await specOf({ mcpServers: { a: entry } }, "claude_desktop_config.json")).toMatchObject(expected);
    expect(await specOf({ servers: { a: entry } }, "mcp.json")).toMatchObject(expected);
    expect(await specOf({ roles: { r: { mcpServers: { a: entry } } } })).toMatchObject(expected);
    expect(await specOf({ mcpServers: { a: { command: "a", env: { inherit: [] } } } })).toMatchObject({
      env: {},
      inherit: [],
    });
  });

  it("as a text under `env` is a variable of that name", async () => {
    const spec = await specOf({ mcpServers: { a: { command: "a", env: { inherit: "x" } } } });
    expect(spec?.env).toEqual({ inherit: "x" });
    expect(spec?.inherit).toBeUndefined();
  });

  it("of the file is the default of its servers, and is not written back into an entry", async () => {
    const config = { env: { inherit: [] }, mcpServers: { a: { command: "a" } } };
    const spec = await specOf(config);
    expect(spec).toMatchObject({ hubInherit: [] });
    expect(spec === undefined ? undefined : toServerEntry(spec)).toEqual({ command: "a" });
    // Under any name of a file; Claude Code's settings have an `env`, too.
    expect(await specOf(config, "mine.json")).toMatchObject({ hubInherit: [], origin: { dialect: "toolcrib" } });
    const claude = { env: { A: "1" }, mcpServers: { a: { command: "a" } } };
    expect(await specOf(claude, "mine.json")).toMatchObject({ origin: { dialect: "claude" } });
  });

  it("that is not a list of names is an error", async () => {
    const place = new Workplace();
    place.write("toolcrib.json", {
      env: { inherit: "all" },
      mcpServers: { a: { command: "a", inherit: ["A=1"] }, b: { command: "b", env: { inherit: [1] } } },
    });
    const paths = (await place.problems()).map(({ path }) => path);
    expect(paths.toSorted()).toEqual(["env.inherit", "mcpServers.a.inherit[0]", "mcpServers.b.inherit[0]"]);
  });
});

describe("[counter-08e] a project", () => {
  const project = (value: object): { readonly place: Workplace; readonly file: string } => {
    const place = new Workplace();
    return { place, file: place.write("toolcrib.json", value) };
  };

  it("shows what its servers would inherit, and asks again when that changes", async () => {
    const { place, file } = project({ mcpServers: { a: { command: "a", env: { inherit: ["AWS_PROFILE"] } } } });
    const at = { env: {}, cwd: place.dir, home: place.home };
    const before = await readProject(file, at);
    expect(describeProject(before)).toEqual(["server a: a and from your environment AWS_PROFILE"]);
    const record = trustRecordOf(before, false);
    expect(isTrusted(record, before)).toBe(true);
    for (const inherit of [["AWS_PROFILE", "GITHUB_TOKEN"], []]) {
      place.write("toolcrib.json", { mcpServers: { a: { command: "a", env: { inherit } } } });
      expect(isTrusted(record, await readProject(file, at))).toBe(false);
    }
  });
});
