/** An MCP server behind a login: small, by hand, and it tells whose token it saw. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AuthorizationServer } from "./authorization-server.ts";
import { type Listening, listen, readBody, sendJson } from "./http.ts";

interface Rpc {
  readonly id?: string | number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly arguments?: Record<string, unknown> };
}

export class ProtectedServer {
  readonly url: string;
  readonly #authorization: AuthorizationServer;
  readonly #listening: Listening;
  /** Who called what, in order; `-` for nobody. */
  readonly seen: { readonly user: string; readonly method: string; readonly token: string }[] = [];

  // What tests turn.
  /** The authorization server that it names. */
  names: string;
  /** No `resource_metadata` in the challenge: it must be found at the well-known address. */
  terse = false;
  /** No OAuth metadata at all. */
  mute = false;
  resource: string | undefined;
  /** The next so many requests are refused whatever token they carry. */
  refuses = 0;
  /** Runs before the token of a request is looked at. */
  onRequest: (method: string) => void = () => {};
  /** A tool call needs this scope. */
  needs: string | undefined;

  private constructor(listening: Listening, authorization: AuthorizationServer) {
    this.#listening = listening;
    this.#authorization = authorization;
    this.url = `${listening.url}/mcp`;
    this.names = authorization.url;
  }

  static async start(authorization: AuthorizationServer): Promise<ProtectedServer> {
    const listening = await listen((request, response) => void server.#answer(request, response));
    const server = new ProtectedServer(listening, authorization);
    return server;
  }

  close(): Promise<void> {
    return this.#listening.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, origin } = new URL(request.url ?? "/", this.url);
    if (pathname === "/.well-known/oauth-protected-resource/mcp" && !this.mute) {
      const resource = this.resource ?? this.url;
      return sendJson(response, 200, { resource, authorization_servers: [this.names], scopes_supported: ["tools"] });
    }
    if (pathname !== "/mcp") return sendJson(response, 404, {});
    const body = request.method === "POST" ? await readBody(request) : "";
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const method = request.method === "POST" ? (JSON.parse(body) as Rpc).method : (request.method ?? "");
    this.onRequest(method);
    const access = token === undefined ? undefined : this.#authorization.check(token);
    this.seen.push({ user: access?.user ?? "-", method, token: token ?? "" });
    if (access === undefined || access.resource !== (this.resource ?? this.url) || this.refuses > 0) {
      if (access !== undefined) this.refuses--;
      const where = `, resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
      const challenge = `Bearer realm="mcp"${this.terse || this.mute ? "" : where}`;
      return sendJson(response, 401, { error: "invalid_token" }, { "www-authenticate": challenge });
    }
    if (this.needs !== undefined && method === "tools/call" && !access.scope.split(" ").includes(this.needs)) {
      const challenge = `Bearer error="insufficient_scope", scope="${this.needs}"`;
      return sendJson(response, 403, { error: "insufficient_scope" }, { "www-authenticate": challenge });
    }
    if (request.method !== "POST") return void response.writeHead(405).end();
    return this.#rpc(JSON.parse(body) as Rpc, access.user, response);
  }

  #rpc({ id, method, params }: Rpc, user: string, response: ServerResponse): void {
    if (id === undefined) return void response.writeHead(202).end();
    const result = (value: unknown): void => sendJson(response, 200, { jsonrpc: "2.0", id, result: value });
    switch (method) {
      case "initialize":
        return result({
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: "protected", version: "1.0.0" },
        });
      case "tools/list":
        return result({
          tools: [{ name: "whoami", description: "Whose token it is.", inputSchema: { type: "object" } }],
        });
      case "tools/call":
        return result({ content: [{ type: "text", text: `${user} ${JSON.stringify(params?.arguments ?? {})}` }] });
      case "ping":
        return result({});
      default:
        return sendJson(response, 200, { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
    }
  }
}
