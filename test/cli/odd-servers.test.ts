/** Servers that do not keep to the protocol, as a user of the command line and of the library meets them. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { workspace, type Workspace } from "./run-cli.ts";

function scripted(place: Workspace, script: object): Record<string, unknown> {
  const server = join(import.meta.dirname, "../fixtures/scripted-server.mjs");
  return { command: process.execPath, args: [server, place.write("script.json", JSON.stringify(script))] };
}

const plainTool = (name: string): object => ({ name, description: name, inputSchema: { type: "object" } });

interface ErrorObject {
  readonly error: { readonly code: string; readonly message: string; readonly details: Record<string, unknown> };
}

it("[whole-05a] what is not a result is an error with details, and an answer without a result is empty", async () => {
  const results = {
    text: { content: "x" },
    object: { content: { type: "text", text: "hidden" } },
    holed: { content: [{ type: "text", text: "one" }, null] },
    silent: { __raw: {} },
    nothing: { __raw: { result: null } },
    bare: {},
    boxed: { content: [{ type: "text", text: { hidden: 1 } }] },
    refused: { __raw: { error: "the disk is full" } },
    unrefused: { __raw: { result: { content: [{ type: "text", text: "fine" }] }, error: null } },
  };
  const place = workspace();
  place.configure({ odd: scripted(place, { tools: Object.keys(results).map(plainTool), results }) });
  const call = (name: string, ...flags: string[]): ReturnType<Workspace["run"]> =>
    place.run(["call", `odd__${name}`, "--standalone", ...flags]);

  const [text, object, holed] = await Promise.all(["text", "object", "holed"].map((name) => call(name, "--json")));
  expect(text?.code).toBe(1);
  expect(text?.json<ErrorObject>().error).toMatchObject({
    code: "tool_error",
    message: expect.stringMatching(/^The tool text of odd returned something that is not a result: content is text/),
    details: { server: "odd", tool: "text", where: "content", found: "text" },
  });
  expect(object?.json<ErrorObject>().error.details).toMatchObject({ where: "content", found: "an object" });
  expect(object?.stdout).not.toContain("hidden");
  expect(holed?.json<ErrorObject>().error.details).toMatchObject({ where: "content[1]", found: "null" });

  const [boxed, refused, unrefused] = await Promise.all(
    ["boxed", "refused", "unrefused"].map((name) => call(name, "--json")),
  );
  expect(boxed?.json<ErrorObject>().error.details).toMatchObject({ where: "content[0].text", found: "an object" });
  expect(refused?.json<ErrorObject>().error).toMatchObject({ code: "tool_error", message: "the disk is full" });
  expect(unrefused?.json()).toMatchObject({ content: [{ type: "text", text: "fine" }] });

  for (const name of ["silent", "nothing", "bare"]) {
    const { code, stdout } = await call(name);
    expect([name, code, stdout.trim()]).toEqual([name, 0, "(empty result)"]);
  }
});

it("[spine-19d] status gives the reason of a server without the name that its line begins with", async () => {
  const place = workspace();
  place.configure({ "my server": { command: "x", env: { A: "${TOOLCRIB_TEST_UNSET}" } } });
  const { stdout } = await place.runHere(["status"]);
  expect(stdout).toMatch(/^my server .* {2}env\.A: \$\{TOOLCRIB_TEST_UNSET\} is not set$/m);
});

it("[whole-06a] [whole-06b] odd tools are offered, and what is left out is told by list and by the hub", async () => {
  const tools = [
    { name: "schemaless", description: "Has no schema." },
    { name: "stringly", description: "Wants text.", inputSchema: { type: "string" } },
    plainTool("plain"),
    { description: "Has no name.", inputSchema: { type: "object" } },
    { ...plainTool("numbered"), description: 7 },
  ];
  const results = { schemaless: { content: [{ type: "text", text: "works" }] } };
  const place = workspace();
  const entry = scripted(place, { tools, results });
  place.configure({ odd: entry });

  const listed = await place.run(["list", "--json", "--standalone"]);
  expect(
    listed.json<{ name: string; inputSchema: unknown }[]>().map(({ name, inputSchema }) => [name, inputSchema]),
  ).toEqual(["schemaless", "stringly", "plain"].map((name) => [`odd__${name}`, { type: "object" }]));
  expect(listed.stderr.match(/tools\/list contains 1 entry without a name, which is left out/g)).toHaveLength(1);
  expect(listed.stderr.match(/The tool "numbered" is not offered: description is a number, not text/g)).toHaveLength(1);
  const called = await place.run(["call", "odd__schemaless", "--standalone"]);
  expect(called.stdout).toContain("works");

  const hub = await createHub({ mcpServers: { odd: entry } }, { home: place.home });
  try {
    await expect
      .poll(() => hub.warnings().flatMap(({ server, message }) => (server === "odd" ? [message] : [])))
      .toEqual([
        "tools/list contains 1 entry without a name, which is left out.",
        'The tool "numbered" is not offered: description is a number, not text',
      ]);
  } finally {
    await hub.close();
  }
});
