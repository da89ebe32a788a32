import { describe, expect, it } from "vitest";
import { editableDefinition, overrideFrom } from "../../src/cli/commands/override.ts";
import type { ToolOverride } from "../../src/model/server-spec.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";

/** An editor that runs this on the document. */
function editor(place: Workspace, change: string): NodeJS.ProcessEnv {
  const script = place.write(
    "edit it.mjs",
    `import { readFileSync, writeFileSync } from "node:fs";
    const file = process.argv.at(-1);
    const text = readFileSync(file, "utf8");
    const edited = JSON.parse(text.replace(/^\\/\\/.*$/gm, ""));
    ${change}
    writeFileSync(file, "// edited\\n" + JSON.stringify(edited));`,
  );
  return { EDITOR: `"${process.execPath}" "${script}" --wait` };
}

function configured(): Workspace {
  const place = workspace();
  place.configure({ files: misbehaving("ok") }, { roles: { dev: {} }, views: { talk: { tools: ["files__*"] } } });
  return place;
}

describe("[shape-05l] toolcrib override", () => {
  it("opens the definition in the editor, and writes what was changed", async () => {
    const place = configured();
    const change = `edited.name = "say"; edited.description = "Says hello."; edited.parameters.text = { fixed: "hello" };`;
    const done = await place.runHere(["override", "files__echo"], { env: editor(place, change) });
    expect(done).toMatchObject({ code: 0, stdout: `Overrode files__echo in ${place.configFile}\n` });
    const override = { name: "say", description: "Says hello.", parameters: { text: { fixed: "hello" } } };
    expect(JSON.parse(place.read("toolcrib.json"))).toMatchObject({
      mcpServers: { files: { overrides: { echo: override } } },
    });
    expect((await place.runHere(["call", "files__say"])).stdout).toContain("hello");
    const listed = (await place.runHere(["list", "files", "--json"])).json<{ name: string; original?: object }[]>();
    expect(listed.find(({ name }) => name === "files__say")).toMatchObject({
      description: "Says hello.",
      inputSchema: { properties: {} },
      original: { name: "files__echo", description: "Gives the text back.", inputSchema: { required: ["text"] } },
    });
    expect(listed.filter(({ original }) => original !== undefined)).toHaveLength(1);

    const shown = (await place.runHere(["override", "files__say", "--show", "--json"])).json();
    expect(shown).toMatchObject({ tool: "echo", override, effective: { description: "Says hello." }, misfit: null });
    const explained = await place.runHere(["policy", "explain", "files__say", "--json"]);
    expect(explained.json()).toMatchObject({ decision: { verdict: "allow" } });
    const same = await place.runHere(["override", "files__say"], { env: editor(place, "") });
    expect(same.stdout).toContain("Nothing to change");
    const reset = await place.runHere(["override", "files__say", "--reset"]);
    expect(reset.stdout).toContain("Removed the override of files__say");
    expect(place.read("toolcrib.json")).not.toContain("overrides");
  });

  it("takes the definition from a file, for a role or a view as well, and shows the change first", async () => {
    const place = configured();
    const file = place.write("edited.json", JSON.stringify({ name: "tell", parameters: { text: { default: "hi" } } }));
    const planned = await place.runHere(["override", "files__echo", "--role", "dev", "--file", file, "--dry-run"]);
    expect(planned.stdout).toMatch(/^\+ +"name": "tell",$/m);
    expect(place.read("toolcrib.json")).not.toContain("tell");
    await place.runHere(["override", "files__echo", "--role", "dev", "--file", file]);
    expect((await place.runHere(["list", "--role", "dev", "--json"])).stdout).toContain('"tell"');
    expect((await place.runHere(["list", "--json"])).stdout).not.toContain('"tell"');
    const view = await place.runHere(["override", "files__echo", "--view", "talk", "--file", "-"], {
      input: JSON.stringify({ hidden: true }),
    });
    expect(view.code).toBe(0);
    const { views } = JSON.parse(place.read("toolcrib.json")) as { views: object };
    expect(views).toMatchObject({ talk: { overrides: { files__echo: { hidden: true } } } });
  });

  it.each([
    [["override", "files__ecko"], /files__echo/],
    [["override", "files__echo", "--role", "nobody", "--reset"], /no role "nobody"/],
    [["override", "files__echo", "--file", "wrong.json"], /parameter "txt"/],
    [["override", "files__echo", "--file", "odd.json"], /parametres/],
    [["override", "files__echo", "--file", "missing.json"], /cannot be read/],
  ])("refuses %j", async (args, message) => {
    const place = configured();
    place.write("wrong.json", JSON.stringify({ parameters: { txt: { fixed: "a" } } }));
    place.write("odd.json", JSON.stringify({ parametres: {} }));
    const before = place.read("toolcrib.json");
    const refused = await place.runHere(args);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(message);
    expect(place.read("toolcrib.json")).toBe(before);
  });

  it("[shape-05c] has its references checked with all others", async () => {
    const place = workspace();
    const overrides = { echo: { description: "${NOT_ONE}", parameters: { text: { fixed: "a ${GONE_TOKEN}" } } } };
    const views = { talk: { tools: ["*"], overrides: { files__env: { parameters: { x: { fixed: ["${ALSO}"] } } } } } };
    place.configure({ files: { ...misbehaving("ok"), overrides } }, { views });
    const checked = (await place.runHere(["secrets", "check", "--json"])).json<
      { reference: string; usedIn: string[] }[]
    >();
    expect(checked.map(({ reference, usedIn }) => [reference, ...usedIn])).toEqual([
      ["${GONE_TOKEN}", "files: overrides.echo.parameters.text.fixed"],
      ["${ALSO}", "views.talk.overrides.files__env.parameters.x.fixed[0]"],
    ]);
    const called = await place.runHere(["call", "files__echo"]);
    expect(called.code).not.toBe(0);
    expect(called.stderr).toContain("${GONE_TOKEN} is not set");
  });

  it("changes nothing if the editor fails", async () => {
    const place = configured();
    const failed = await place.runHere(["override", "files__echo"], { env: { EDITOR: "exit 3; true" } });
    expect(failed.code).not.toBe(0);
    expect(failed.stderr).toContain("nothing was changed");
  });
});

describe("[shape-05l] the document that people edit", () => {
  const base = {
    name: "create",
    title: "Create",
    description: "Creates.",
    inputSchema: {
      type: "object",
      properties: { repo: { description: "Where" }, draft: { default: false }, body: {} },
    },
    annotations: { readOnlyHint: true },
  };
  const overrides: ToolOverride[] = [
    {},
    { name: "report", title: "Report", description: "Reports.", hidden: true },
    { annotations: { readOnlyHint: false, openWorldHint: true }, output: { drop: ["a.b", "c[*]"] } },
    { parameters: { repo: { fixed: "acme/web" }, draft: { default: true }, body: { description: "Text" } } },
    { parameters: { repo: { fixed: "${REPO}" } }, description: "Other" },
  ];

  it.each(overrides)("gives back the override %j when nothing is changed", (override) => {
    const document = editableDefinition({ key: "create", base, override });
    expect(overrideFrom({ key: "create", base }, JSON.parse(JSON.stringify(document)))).toEqual(override);
  });
});
