import { describe, expect, it } from "vitest";
import {
  type AskForValue,
  type CollectOptions,
  collectValues,
  type PlannedServer,
  requiredServers,
} from "../../../src/hub/install/required-servers.ts";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";
import type { Skill } from "../../../src/model/skill.ts";
import { ServerEntrySchema, type ServerSpec } from "../../../src/model/server-spec.ts";

function skillWith(name: string, servers: string): Skill {
  const text = `---\nname: ${name}\ndescription: x\nrequires-mcp-servers:\n${servers}\n---\nx\n`;
  return { ...parseSkill(Buffer.from(text), name), dir: `/skills/${name}` };
}

const TWO = `
  - name: files
    command: files-server
    args: ["\${ROOT}", "--mode", "\${MODE}"]
    parameters:
      ROOT: {description: The folder}
      MODE: {default: plain}
  - name: backup
    command: backup-server
    args: ["\${ROOT}"]
    env: {TOKEN: "\${TOKEN}", NOTE: "\${NOTE}"}
    parameters:
      ROOT: {description: The other folder, default: "\${HOME}/backup"}
      TOKEN: {sensitive: true}
      NOTE: {required: false}
`;

const servers = (): PlannedServer[] => requiredServers([skillWith("s", TWO)], []);

function options(given: Partial<CollectOptions> = {}): CollectOptions {
  return {
    set: [],
    env: {},
    cwd: "/work",
    userHome: "/home/u",
    variables: () => ({ CWD: "/work", WORKSPACE: "/work", HOME: "/home/u", SKILL_DIR: "/skills/s" }),
    ...given,
  };
}

const spec = (id: string, entry: object): ServerSpec => ({
  ...ServerEntrySchema.parse(entry),
  id,
  origin: { file: "/c.json", dialect: "toolcrib" },
  baseDir: "/",
});

describe("[skill-11b] where values come from", () => {
  it("takes --set before a question, offers the environment for what is required, and defaults for the rest", async () => {
    const asked: string[] = [];
    const ask: AskForValue = async ({ server, parameter, offered, fromEnvironment }) => {
      asked.push(`${server.id}.${parameter.name}=${offered ?? ""}${fromEnvironment ? " (yours)" : ""}`);
      return parameter.name === "NOTE" ? "typed" : "";
    };
    const env = { TOKEN: "from-env", ROOT: "/env", NOTE: "mine" };
    const { values, taken } = await collectValues(servers(), options({ set: ["files.ROOT=/set"], env, ask }));
    expect(values.get("files")).toEqual({ ROOT: "/set", MODE: "plain" });
    expect(values.get("backup")).toEqual({ ROOT: "/home/u/backup", TOKEN: "from-env", NOTE: "typed" });
    expect(asked).toEqual([
      "files.MODE=plain",
      "backup.ROOT=/home/u/backup",
      "backup.TOKEN=from-env (yours)",
      "backup.NOTE=",
    ]);
    expect(taken).toEqual([{ server: "backup", name: "TOKEN" }]);
  });

  it("neither demands nor takes what the template has no place for", async () => {
    const declared = `
  - name: files
    command: files-server
    parameters:
      EXTRA: {description: Not used, required: true, sensitive: true}`;
    const planned = requiredServers([skillWith("s", declared)], []);
    const none = await collectValues(planned, options({ env: { EXTRA: "mine" } }));
    expect([none.values.get("files"), none.taken, none.warnings]).toEqual([{}, [], []]);
    const ask: AskForValue = () => Promise.reject(new Error("nobody is asked"));
    const given = await collectValues(planned, options({ set: ["EXTRA"], env: { EXTRA: "mine" }, ask }));
    expect(given.values.get("files")).toEqual({});
    expect(given.warnings).toEqual(["EXTRA is not used: the skill declares it, but its server does not use it."]);
  });

  it("takes defaults where nobody is asked, and leaves out what is optional", async () => {
    const given = options({ set: ["files.ROOT=/a", "TOKEN"], env: { TOKEN: "t", MODE: "env", NOTE: "env" } });
    const { values, taken, warnings } = await collectValues(servers(), given);
    expect(values.get("files")).toEqual({ ROOT: "/a", MODE: "plain" });
    expect(values.get("backup")).toEqual({ ROOT: "/home/u/backup", TOKEN: "t" });
    expect([taken, warnings]).toEqual([[{ server: "backup", name: "TOKEN" }], []]);
    const named = await collectValues(servers(), { ...given, set: [...given.set, "backup.NOTE"] });
    expect(named.values.get("backup")).toMatchObject({ NOTE: "env" });
  });

  it("makes paths whole, because no shell does and the server runs elsewhere; secrets stay as they are", async () => {
    const set = ["files.ROOT=~/notes", "backup.ROOT=../up", "TOKEN=~/not-a-path"];
    const { values, warnings } = await collectValues(servers(), options({ set }));
    expect(values.get("files")?.["ROOT"]).toBe("/home/u/notes");
    expect(values.get("backup")).toMatchObject({ ROOT: "/up", TOKEN: "~/not-a-path" });
    expect(warnings).toEqual([expect.stringContaining("TOKEN was on the command line")]);
    expect(warnings.join()).not.toContain("not-a-path");
  });

  it("does not take the shell's own variables for parameters", async () => {
    const planned = requiredServers([skillWith("s", "  - {name: a, command: x, args: ['${PATH}']}")], []);
    await expect(collectValues(planned, options({ env: { PATH: "/bin" } }))).rejects.toThrow("a.PATH");
  });

  it("refuses --set that means nothing, without repeating it", async () => {
    const secret = collectValues(servers(), options({ set: ["just-a-secret"] }));
    await expect(secret).rejects.toThrow(
      /^--set takes NAME=value or server.NAME=value, or NAME alone for the variable of your environment\.$/,
    );
    await expect(collectValues(servers(), options({ set: ["TOKN=x"] }))).rejects.toMatchObject({
      code: "invalid_arguments",
      hint: expect.stringContaining("backup.TOKEN"),
    });
  });

  it("says when a variable is not set that --set names", async () => {
    await expect(collectValues(servers(), options({ set: ["TOKEN"], env: { TOKEN: "" } }))).rejects.toThrow(
      "TOKEN is not set in your environment.",
    );
  });

  it("only warns of values for a server that is there already, so that an install can be repeated", async () => {
    const planned = requiredServers(
      [skillWith("s", TWO)],
      [spec("files", { command: "x" }), spec("backup", { command: "y" })],
    );
    const { values, warnings } = await collectValues(planned, options({ set: ["ROOT=/x"] }));
    expect(values.size).toBe(0);
    expect(warnings).toEqual([expect.stringContaining("files is already configured")]);
  });
});

describe("[skill-11b] whose variables are taken without being named", () => {
  const env = { WEATHER_TOKEN: "own", AWS_SECRET_ACCESS_KEY: "aws", GITHUB_TOKEN: "gh", CITY: "Bern", STAGE: "x" };
  const wants = (name: string, more = ""): PlannedServer[] =>
    requiredServers([skillWith("sun", `  - {name: weather, command: x, args: ['\${${name}}']${more}}`)], []);
  const value = async (planned: readonly PlannedServer[], set: string[] = []): Promise<string | undefined> => {
    const { values } = await collectValues(planned, options({ env: { ...env, DSN: "pg://u:pass@h/d" }, set }));
    return Object.values(values.get(planned[0]?.id ?? "") ?? {})[0];
  };

  it("what is harmless, and only where it is required", async () => {
    expect(await value(wants("CITY"))).toBe("Bern");
    expect(await value(wants("CITY", ", parameters: {CITY: {required: false}}"))).toBeUndefined();
  });

  it.each(["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "WEATHER_TOKEN", "DSN"])(
    "[trust-10a] not %s; the error says how it would be",
    async (name) => {
      const plain = `, parameters: {${name}: {sensitive: false}}`;
      for (const planned of [wants(name), wants(name, plain)]) {
        await expect(value(planned)).rejects.toMatchObject({
          message: expect.stringContaining(`weather.${name}`),
          hint: expect.stringContaining(`--set ${name}`),
          details: { missing: [{ server: "weather", name, inEnvironment: true }] },
        });
        expect(await value(planned, [name])).toBeDefined();
      }
    },
  );

  it("[trust-10a] no credential to a server that is called after it, or known to need it", async () => {
    const token = { GITHUB_PERSONAL_ACCESS_TOKEN: "pat", AWS_SECRET_ACCESS_KEY: "aws" };
    const own = "  - {name: my-aws, command: x, args: ['${AWS_SECRET_ACCESS_KEY}']}";
    for (const [servers, name] of [
      ["  - github", "GITHUB_PERSONAL_ACCESS_TOKEN"],
      [own, "AWS_SECRET_ACCESS_KEY"],
    ] as const) {
      const planned = requiredServers([skillWith("aws", servers)], []);
      await expect(collectValues(planned, options({ env: token }))).rejects.toThrow(`--set ${name}`);
      const { taken } = await collectValues(planned, options({ env: token, set: [name] }));
      expect(taken).toEqual([{ server: planned[0]?.id, name }]);
    }
  });

  it("keeps a value that is a credential by its shape as one, whatever the skill says of it", async () => {
    const dsn = wants("DSN", ", parameters: {DSN: {sensitive: false}}");
    const collected = await collectValues(dsn, options({ set: ["DSN=pg://u:pass@h/d"] }));
    expect(collected.servers[0]?.server.parameters).toEqual([{ name: "DSN", required: true, sensitive: true }]);
    const plain = await collectValues(dsn, options({ set: ["DSN=pg://h/d"] }));
    expect(plain.servers[0]?.server.parameters).toMatchObject([{ sensitive: false }]);
  });
});

describe("[skill-13a] which servers are needed", () => {
  const one = (name: string): Skill => skillWith(name, "  - {name: files, command: files-server, args: ['${ROOT}']}");

  it("takes one for skills that ask for the same", () => {
    const planned = requiredServers([one("a"), one("b")], []);
    expect(planned.map(({ id, neededBy }) => [id, neededBy])).toEqual([["files", ["a", "b"]]]);
  });

  it("takes the one of the config that does the job", () => {
    const serving = skillWith("a", "  - {name: files, command: files-server, args: [serve, '${ROOT}']}");
    const planned = requiredServers([serving], [spec("mine", { command: "files-server", args: ["serve", "/x"] })]);
    expect(planned).toMatchObject([{ id: "mine", configured: { id: "mine" } }]);
    const named = requiredServers([one("a")], [spec("files", { command: "other" })]);
    expect(named).toMatchObject([{ id: "files", configured: { command: "other" } }]);
  });

  it("gives two that differ ids of their own, and makes ids of any name", () => {
    const other = skillWith("c", "  - {name: files, command: other-server}");
    expect(requiredServers([one("a"), other], []).map(({ id }) => id)).toEqual(["files", "files-2"]);
    const odd = skillWith("d", '  - {name: "../../x y", command: z}\n  - {name: "local", command: w}');
    for (const { id } of requiredServers([odd], [])) expect(id).toMatch(/^[A-Za-z0-9][A-Za-z0-9._@-]*$/);
    expect(requiredServers([odd], []).map(({ id }) => id)).not.toContain("local");
  });

  it("keeps servers apart that run from the skill's own folder", () => {
    const own = (name: string): Skill =>
      skillWith(name, "  - {name: own, command: node, args: ['${SKILL_DIR}/s.mjs']}");
    expect(requiredServers([own("a"), own("b")], []).map(({ id }) => id)).toEqual(["own", "own-2"]);
  });
});
