import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ConfigView } from "../../../../src/contract/settings-schemas.ts";
import { type ApiScene, apiScene, type SceneOptions, TOKENS } from "./api-setup.ts";

async function scene(options: SceneOptions): Promise<ApiScene> {
  const made = await apiScene(options);
  onTestFinished(() => made.close());
  return made;
}

const off = { command: "nothing", enabled: false };

describe("[oper-04a] the config with its origins", () => {
  it("says of each value where it came from", async () => {
    const made = await scene({
      servers: { files: off },
      config: {
        guard: { wrap: "all" },
        roles: { reviewer: { mcpServers: { own: off } }, chef: {} },
        store: "sqlite",
      },
      env: { TOOLCRIB_LIMITS_CALLS_PER_MINUTE: "77" },
      commandLine: { "http.port": { option: "--port", value: 4701 } },
    });
    await made.hub.servers.add("added", off);
    const view = (await made.request("admin", "GET", "/config")).json<ConfigView>();
    const value = (key: string): unknown => view.values.find((each) => each.key === key);
    const lineOf = (text: string): number =>
      readFileSync(made.file, "utf8")
        .split("\n")
        .findIndex((line) => line.includes(text)) + 1;
    expect(value("guard.wrap")).toEqual({
      key: "guard.wrap",
      value: "all",
      origin: "file",
      where: `${made.file}:${lineOf('"wrap"')}`,
    });
    expect(value("guard.taint")).toEqual({ key: "guard.taint", value: "off", origin: "default" });
    expect(value("limits.callsPerMinute")).toMatchObject({
      value: 77,
      origin: "environment",
      where: "TOOLCRIB_LIMITS_CALLS_PER_MINUTE",
    });
    expect(value("http.port")).toMatchObject({ value: 4701, origin: "command line", where: "--port" });
    expect(value("mcpServers.files")).toMatchObject({ origin: "file", where: `${made.file}:${lineOf('"files"')}` });
    expect(value("mcpServers.own@reviewer")).toMatchObject({ where: `${made.file}:${lineOf('"own"')}` });
    expect(value("mcpServers.added")).toMatchObject({ origin: "store", value: { command: "nothing" } });
    expect(view).toMatchObject({ file: made.file, roles: ["reviewer", "chef"] });
    // Not what is only watched for, such as etc/mcp-servers.json.
    expect(view.files).toEqual([made.file]);
  });

  it("never shows a token or a plain secret", async () => {
    const env = { API_KEY: "plain-secret-value-1", REFERENCE: "secret://env/SOMETHING" };
    const headers = { Authorization: "Bearer plain-secret-value-2" };
    const made = await scene({
      servers: { files: { ...off, env }, remote: { url: "https://example.com/mcp", headers, enabled: false } },
      config: { secrets: { keep: "encrypted", key: "plain-secret-value-3" } },
    });
    const { text } = await made.request("admin", "GET", "/config");
    expect(text).not.toContain("plain-secret-value");
    for (const token of Object.values(TOKENS)) expect(text).not.toContain(token);
    expect(text).toContain("secret://env/SOMETHING");
    expect(JSON.parse(text)).toMatchObject({
      tokens: [{ user: "ops", role: null, scopes: ["admin"] }, {}, {}, { user: "rita", role: "reviewer" }],
    });
  });

  it("[oper-07a] where no token is needed, what needs admin asks for the hub's own", async () => {
    const made = await scene({ servers: {}, open: true });
    const answer = await made.request(null, "GET", "/config");
    expect([answer.status, answer.json().error.message]).toEqual([401, "This needs the hub's own token."]);
    const me = await made.request(null, "GET", "/me");
    expect(me.json()).toMatchObject({ user: null, owner: true, scopes: ["read", "call"] });
  });
});
