/** The hub under a path of a reverse proxy: a real small one, in front of a real hub, with a browser before it. */
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everything } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

const PREFIX = "/apps/toolcrib";

/** As nginx does with `location /apps/toolcrib/`, with or without a path in `proxy_pass`. */
class Proxy {
  /** The hub's, once it is up. */
  port = 0;
  readonly #takesOff: boolean;
  readonly #server: Server;
  /** Requests that were not for the hub. */
  readonly astray: string[] = [];

  constructor({ takesOff }: { readonly takesOff: boolean }) {
    this.#takesOff = takesOff;
    this.#server = createServer((request, response) => {
      const path = this.#pathOf(request);
      if (path === undefined) {
        if (request.url === PREFIX) response.writeHead(301, { location: `${PREFIX}/` });
        else response.writeHead(404);
        response.end();
        return;
      }
      const { method = "GET", headers } = request;
      const onward = httpRequest({ host: "127.0.0.1", port: this.port, method, path, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(response);
      });
      onward.on("error", () => response.destroy());
      request.pipe(onward);
    });
    this.#server.on("upgrade", (request, socket, head) => {
      const path = this.#pathOf(request);
      if (path === undefined) return socket.destroy();
      const onward = connect(this.port, "127.0.0.1", () => {
        const lines = [`${request.method} ${path} HTTP/1.1`];
        for (let at = 0; at < request.rawHeaders.length; at += 2)
          lines.push(`${request.rawHeaders[at]}: ${request.rawHeaders[at + 1]}`);
        onward.write(`${lines.join("\r\n")}\r\n\r\n`);
        onward.write(head);
        onward.pipe(socket).pipe(onward);
      });
      onward.on("error", () => socket.destroy());
      socket.on("error", () => onward.destroy());
    });
  }

  #pathOf({ url = "/" }: IncomingMessage): string | undefined {
    if (!url.startsWith(`${PREFIX}/`)) {
      this.astray.push(url);
      return undefined;
    }
    return this.#takesOff ? url.slice(PREFIX.length) : url;
  }

  async start(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

describe.skipIf(missing !== undefined).each([
  ["takes the path off", true],
  ["leaves the path", false],
])("[joy-10a] behind a proxy that %s", (_how, takesOff) => {
  const proxy = new Proxy({ takesOff });
  let bench: BrowserBench;
  let opened: OpenPage;
  let origin: string;

  beforeAll(async () => {
    origin = await proxy.start();
    bench = await BrowserBench.start({
      mcpServers: { everything: everything() },
      http: { publicUrl: `${origin}${PREFIX}`, ...(takesOff ? {} : { basePath: PREFIX }) },
    });
    proxy.port = Number(new URL(bench.hub.url).port);
    expect(bench.hub.loginLink).toMatch(new RegExp(`^${origin}${PREFIX}/#login=`));
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    proxy.close();
  });

  it("opens every view, with what it loads and its WebSocket under the path", async () => {
    const { page } = opened;
    await page.getByText("Live").waitFor();
    for (const view of ["Servers", "Tools", "Approvals", "Skills", "Sessions", "Audit", "Settings"]) {
      await opened.go(view);
      expect(page.url()).toBe(`${origin}${PREFIX}/${view.toLowerCase()}`);
    }
    await opened.go("Tools");
    await page
      .getByRole("link", { name: /everything__echo/ })
      .first()
      .waitFor();
    expect(proxy.astray).toEqual([]);
    expect(opened.misdeeds).toEqual({ foreign: [], wrong: [] });
  });

  it("opens a view by its address, also without and with a slash at its end", async () => {
    const { page } = opened;
    for (const path of ["/tools?tool=everything__echo", "/tools/", "/", ""]) {
      await page.goto(`${origin}${PREFIX}${path}`);
      await page.locator("h1").waitFor();
      await expect
        .poll(() =>
          page
            .locator("img")
            .first()
            .evaluate((image) => "naturalWidth" in image && image.naturalWidth),
        )
        .toBeGreaterThan(0);
    }
    expect(proxy.astray.filter((path) => path !== PREFIX)).toEqual([]);
  });

  it("has a cookie for this path only, and ends it", async () => {
    const { page, context } = opened;
    const [cookie, ...others] = await context.cookies(`${origin}${PREFIX}/`);
    expect([cookie?.path, cookie?.httpOnly, cookie?.sameSite, others]).toEqual([`${PREFIX}/`, true, "Strict", []]);
    expect(await context.cookies(`${origin}/other/`)).toEqual([]);
    await opened.open(`${PREFIX}/settings?tab=about`);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    expect(await context.cookies(`${origin}${PREFIX}/`)).toEqual([]);
  });

  it("serves MCP, the API and its documentation there", async () => {
    const client = new Client({ name: "ada", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}${PREFIX}/mcp`)));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("everything__echo");
    await client.close();
    const docs = await fetch(`${origin}${PREFIX}/api/docs`);
    const [, link = ""] = /href="([^"]*openapi\.json)"/.exec(await docs.text()) ?? [];
    const document = await fetch(new URL(link, docs.url));
    expect(document.status).toBe(200);
    const { servers } = (await document.json()) as { readonly servers: readonly { readonly url: string }[] };
    expect(new URL(servers[0]?.url ?? "", document.url).href).toBe(`${origin}${PREFIX}/api/v1`);
    const stream = await fetch(`${origin}${PREFIX}/sse`, { headers: { accept: "text/event-stream" } });
    const first = await stream.body?.getReader().read();
    const [, endpoint = ""] = /data: (\S+)/.exec(new TextDecoder().decode(first?.value)) ?? [];
    expect(new URL(endpoint, stream.url).pathname).toBe(`${PREFIX}/messages`);
  });

  it("serves the same without the path to this machine, where it may be opened past the proxy", async () => {
    const window = await bench.window();
    await window.page.goto(`${bench.hub.url}/servers`);
    await window.page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    expect((await fetch(`${bench.hub.url}/healthz`)).status).toBe(200);
    // The path is taken off once, and by one of the two.
    const twice = await fetch(`${origin}${PREFIX}${PREFIX}/healthz`);
    expect(twice.status).toBe(404);
    await window.context.close();
  });
});
