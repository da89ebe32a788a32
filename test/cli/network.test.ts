/** Behind a proxy, as a person sees it: `list`, `doctor` and `serve` with real npx and a registry on loopback. */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Check, networkChecks } from "../../src/cli/commands/doctor.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { type RegistryOptions, startRegistry } from "../support/npm-registry.ts";
import { eventually } from "../support/eventually.ts";
import { isMissing } from "../support/skips.ts";
import { workspace } from "./run-cli.ts";

const NAME = "toolcrib-small-server";
const PROGRAM = resolve(import.meta.dirname, "../fixtures/environment-server.mjs");
const small = { small: { command: "npx", args: ["-y", NAME] } };

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function registry(options: RegistryOptions): Promise<string> {
  const started = await startRegistry(NAME, "1.2.3", PROGRAM, options);
  stops.push(() => started.stop());
  return started.url;
}

const noNpx = isMissing("npx", spawnSync("npx", ["--version"]).status === 0 ? undefined : "npx is not installed");

describe.skipIf(noNpx)("a server of npx", () => {
  it("[counter-09f] list shows the download beside the result", async () => {
    const place = workspace();
    place.configure(small);
    const env = { npm_config_registry: await registry({ delayMs: 3000 }) };
    const { code, stdout, stderr } = await place.run(["list"], { env });
    expect(stderr).toBe(`small: installing ${NAME} …\n`);
    expect(stdout).toContain("small__tell");
    expect(code).toBe(0);
  });

  it("[counter-08f] [counter-08g] list fails soon, and doctor names what is missing", async () => {
    const place = workspace();
    place.configure(small);
    const env = { npm_config_registry: "http://127.0.0.1:9/", NODE_EXTRA_CA_CERTS: "/nonexistent/ca.pem" };
    const begun = performance.now();
    const listed = await place.run(["list", "--json"], { env });
    expect(performance.now() - begun).toBeLessThan(20_000);
    expect(listed.code).toBe(4);
    // A table has one line for each server: npm's own words are on it.
    expect((await place.run(["status"], { env })).stdout).toMatch(
      /cannot reach its registry\. It says: .*127\.0\.0\.1:9/,
    );
    const { checks } = (await place.run(["doctor", "--json"], { env })).json<{ checks: Check[] }>();
    const failed = checks.find(({ server }) => server === "small");
    expect(failed).toMatchObject({ status: "fail", details: { problem: "registry_unreachable" } });
    expect(failed?.message).toContain(`npm could not install ${NAME}: it cannot reach its registry.`);
    expect(failed?.hint).toContain("HTTPS_PROXY");
    const [network, missing] = checks.filter(({ area }) => area === "network");
    expect(network?.message).toBe("servers inherit NODE_EXTRA_CA_CERTS, npm_config_registry");
    expect(missing?.message).toBe("NODE_EXTRA_CA_CERTS names /nonexistent/ca.pem, which cannot be read.");
  });

  it("[counter-09f] serve, REST and events show the download", async () => {
    const place = workspace();
    place.configure(small, { http: { port: 0 } });
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const env = { npm_config_registry: await registry({ held }) };
    const { child, finished } = place.start(["serve"], { env });
    let printed = "";
    child.stdout?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    const until = (pattern: RegExp): Promise<RegExpExecArray> =>
      eventually(() => pattern.exec(printed) ?? undefined, `${pattern}`);
    const [, url = ""] = await until(/(http:\/\/127\.0\.0\.1:\d+)\//);
    const events = await fetch(`${url}/api/v1/events`, { headers: { accept: "text/event-stream" } });
    await until(new RegExp(`wait +small +installing ${NAME} …`));
    const listed = async (): Promise<string> => (await fetch(`${url}/api/v1/mcp/servers`)).text();
    expect(await listed()).toContain(`"progress":"installing ${NAME} …"`);
    release();
    await until(/ready +small +1 tool/);
    expect(await listed()).toContain('"state":"ready"');
    expect(await listed()).not.toContain('"progress"');
    child.kill("SIGTERM");
    // Ends with the hub.
    const streamed = await events.text().catch(() => "");
    expect(streamed).toMatch(new RegExp(`mcp.server.changed.*"progress":"installing ${NAME} …"`, "s"));
    await finished;
  }, 120_000);
});

describe("[counter-08g] what doctor says of the network", () => {
  const checks = async (config: object, env: NodeJS.ProcessEnv): Promise<Check[]> =>
    networkChecks(await loadConfig({ config, env: {}, cwd: "/" }), env);
  const mcpServers = { a: { command: "x" } };

  it("names, and never values with passwords", async () => {
    const env = { HTTPS_PROXY: "http://me:Quiet-Harbor-4711@p.test:1", HTTP_PROXY: "http://[", SECRET: "s" };
    const found = await checks({ mcpServers }, env);
    expect(found.map(({ status, message }) => [status, message])).toEqual([
      ["ok", "servers inherit HTTPS_PROXY, HTTP_PROXY"],
      ["warn", "HTTP_PROXY is not an address."],
    ]);
    expect(JSON.stringify(found)).not.toContain("Harbor");
  });

  it("what is not passed on, and that there is nothing", async () => {
    const [kept] = await checks({ mcpServers, env: { inherit: [] } }, { HTTPS_PROXY: "http://p.test:1" });
    expect(kept?.message).toBe(
      "servers inherit no proxy, certificate authority or registry; not passed on, because of env.inherit: HTTPS_PROXY",
    );
    expect(await checks({ mcpServers: { b: { url: "https://h.test/mcp" } } }, {})).toEqual([]);
  });

  it("a runner in a cage without network", async () => {
    const caged = { a: { command: "npx", args: ["-y", "x"], sandbox: "bubblewrap" } };
    const [, warned] = await checks({ mcpServers: caged }, {});
    expect(warned).toMatchObject({ status: "warn", server: "a" });
    const reached = { a: { ...caged.a, sandbox: { kind: "bubblewrap", network: "host" } } };
    expect(await checks({ mcpServers: reached }, {})).toHaveLength(1);
  });
});
