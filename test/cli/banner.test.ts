import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { printBanner, printOpenLine, type Served } from "../../src/cli/serve/banner.ts";
import { loadConfig } from "../../src/config/load-config.ts";

async function bannerOf(more: Partial<Served>, isTTY = false): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const out = new Output({ stdout, stderr: new PassThrough(), env: {}, json: false, quiet: false });
  const config = await loadConfig({ config: {}, env: {}, cwd: "/" });
  const listener = { url: "http://127.0.0.1:4700", loginLink: () => "http://127.0.0.1:4700/login" };
  printBanner(out, { listener, config, needsToken: false, command: "toolcrib", ...more });
  return String(stdout.read());
}

it("[joy-11a] the start ends with what to open, which in a log is no login", () => {
  const lineOf = (isTTY: boolean): string => {
    const stdout = Object.assign(new PassThrough(), { isTTY });
    const out = new Output({ stdout, stderr: new PassThrough(), env: { NO_COLOR: "1" }, json: false, quiet: false });
    const listener = { url: "http://127.0.0.1:4700", loginLink: () => "http://127.0.0.1:4700/#login=c0de" };
    printOpenLine(out, { listener, command: "node bin/toolcrib.js" });
    return String(stdout.read()).trim();
  };
  expect(lineOf(true)).toBe("Open this: http://127.0.0.1:4700/#login=c0de   (works once)");
  expect(lineOf(false)).toMatch(/^Open this: http:\/\/127\.0\.0\.1:4700\/ +\(node bin\/toolcrib\.js login/);
});

it("[trust-17a] the login link is for a terminal alone", async () => {
  expect(await bannerOf({}, true)).toContain("http://127.0.0.1:4700/login   (works once)");
  const log = await bannerOf({});
  expect(log).not.toContain("/login ");
  expect(log).toMatch(/^ +Page +http:\/\/127\.0\.0\.1:4700\/ +\(toolcrib login +prints a link that opens it\)$/m);
});

it("[scale-05a] a node says of which cluster it is, and offers no client a hub of its own", async () => {
  const alone = await bannerOf({});
  expect(alone).toContain("Claude Desktop");
  expect(alone).not.toContain("Cluster");
  const node = await bannerOf({ cluster: { name: "crib", node: { id: "1", name: "tools-1", facts: {} } } });
  expect(node).toMatch(/^ +Cluster +crib; this node is tools-1$/m);
  expect(node).toContain("Claude Code");
  expect(node).not.toContain("Claude Desktop");
});

it("[counter-03b] snippets name the variable of the token, and the role of a client that starts Toolcrib", async () => {
  const http = { auth: { tokens: [{ token: "secret://env/CRIB_TOKEN", role: "reader" }] } };
  const config = await loadConfig({ config: { roles: { reader: {} }, http }, env: {}, cwd: "/" });
  const text = await bannerOf({ config, needsToken: true });
  expect(text).toContain("--header 'Authorization: Bearer ${CRIB_TOKEN}'");
  expect(text).toContain('"Authorization":"Bearer ${env:CRIB_TOKEN}"');
  expect(text).toContain('"mcp","--role","reader"');
  const plain = { auth: { tokens: [{ token: "tok-5f0e2c6b9d1f4a7c" }] } };
  const other = await bannerOf({
    config: await loadConfig({ config: { http: plain }, env: {}, cwd: "/" }),
    needsToken: true,
  });
  expect(other).toContain('"Authorization":"Bearer <token>"');
  expect(other).not.toContain("tok-5f0e2c6b9d1f4a7c");
});
