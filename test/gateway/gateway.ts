/** A hub with all its MCP doors in this process, wired as `toolcrib serve` and `toolcrib mcp` wire them. */
import { PassThrough, type Readable, type Writable } from "node:stream";
import { openListener } from "../../src/doors/http/listener.ts";
import { McpDoor } from "../../src/doors/mcp/mcp-door.ts";
import { McpHttp, type McpHttpOptions } from "../../src/doors/mcp/http/mcp-http.ts";
import type { RequestOrigin } from "../../src/doors/mcp/view-scope.ts";
import { StdioDoor } from "../../src/doors/mcp/stdio-door.ts";
import { createHub, type HubOptions } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import { SCOPES } from "../../src/model/caller.ts";
import { systemClock } from "../../src/base/clock.ts";
import { type ConfigInput, HttpSchema } from "../../src/model/config.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { Secrets } from "../../src/secrets/secrets.ts";

export interface Gateway extends AsyncDisposable {
  readonly hub: Hub;
  readonly door: McpDoor;
  /** Without a slash at the end. */
  readonly url: string;
  /** A client's ends of the pipes of a stdio door. */
  pipe(): { readonly input: Readable; readonly output: Writable };
}

export interface GatewayOptions extends HubOptions {
  readonly mcp?: Partial<McpHttpOptions>;
}

export async function openGateway(
  config: ConfigInput,
  { mcp = {}, ...options }: GatewayOptions = {},
): Promise<Gateway> {
  const redactor = new Redactor();
  const hub = await createHub(config, { door: "mcp", redactor, ...options });
  const http = HttpSchema.parse({ ...config.http, port: 0 });
  const door = new McpDoor({ hub, holdsCalls: true });
  const { sessions: maxSessions, streams: maxStreams, sessionIdleMs } = http.limits;
  const transport = new McpHttp({
    door,
    clock: systemClock,
    basePath: "/mcp",
    ssePath: "/sse",
    messagesPath: "/messages",
    maxSessions,
    maxStreams,
    sessionIdleMs,
    warn: () => {},
    ...mcp,
  });
  const secrets = new Secrets({ env: options.env ?? process.env, redactor });
  const listener = await openListener({
    http,
    callsPerMinute: hub.config.config.limits.callsPerMinute,
    routes: transport.routes,
    resolve: async (text) => (await secrets.resolve(text, { baseDir: process.cwd() })).value,
    redactor,
    warn: () => {},
  });
  const pipes: StdioDoor[] = [];
  const origin: RequestOrigin = { caller: { key: "stdio", owner: true, scopes: new Set(SCOPES) }, scope: {} };
  return {
    hub,
    door,
    url: listener.url,
    pipe() {
      const [toDoor, toClient] = [new PassThrough(), new PassThrough()];
      const stdio = new StdioDoor(door, origin, { input: toDoor, output: toClient });
      pipes.push(stdio);
      void stdio.run().then(() => stdio.close());
      return { input: toClient, output: toDoor };
    },
    async [Symbol.asyncDispose]() {
      await listener.stopAccepting();
      for (const stdio of pipes) stdio.close();
      await transport.close(0);
      door.close();
      await listener.close();
      await hub.close();
    },
  };
}
