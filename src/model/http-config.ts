/** The `http` key: where the HTTP doors listen, who may enter, and what a request may cost. */
import { z } from "zod";
import { SCOPES } from "./caller.ts";

const Count = z.int().positive();
const Milliseconds = z.int().positive();
const Text = z.string().min(1);

const Origin = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/?#@*]+$/, "an origin such as https://app.example.com");

const TokenSchema = z.strictObject({
  token: Text.describe("The token. Use a reference such as `secret://env/TOOLCRIB_TOKEN`, not the text."),
  user: Text.optional().describe('Who is behind it; servers with `isolation: "user"` need it.'),
  role: Text.optional().describe("The role that it is bound to; it can choose no other. It may choose any if absent."),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .prefault(["read", "call"])
    .describe(
      "What it may do: `read` lists, resources and prompts; `call` tools as well; `approve` answers for calls of others that wait for approval, and nothing else; `admin` everything.",
    ),
});

const ScopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "a scope without spaces");
const ScopeRule = z.union([ScopeName, z.literal(true)]);

const OAuthScopesSchema = z.strictObject({
  read: ScopeRule.default("read").describe("Scope of the token that gives `read`; true if every valid token has it."),
  call: ScopeRule.default("call").describe("Scope of the token that gives `call`, and `read` with it; true as above."),
  approve: ScopeName.optional().describe("Scope of the token that gives `approve`; no token has it if absent."),
  admin: ScopeName.optional().describe("Scope of the token that gives `admin`; no token has it if absent."),
});

const ResourceServerSchema = z.strictObject({
  issuer: Text.describe(
    "Address of the authorization server, exactly as it stands in its tokens; https unless loopback.",
  ),
  audience: Text.optional().describe(
    "What has to stand in `aud` of a token; the address of this hub, with or without the path of the door, if absent.",
  ),
  jwksUri: Text.optional().describe("Address of its keys; from its metadata (OAuth or OpenID Connect) if absent."),
  scopes: OAuthScopesSchema.prefault({}).describe("Which scopes of a token (`scope` or `scp`) give which of ours."),
  userClaim: Text.default("sub").describe("Claim that names the user."),
  roleClaim: Text.optional().describe("Claim that names the role; a token without it is then refused."),
});

const HttpAuthSchema = z.strictObject({
  tokens: z.array(TokenSchema).min(1).optional().describe("Bearer tokens that are known beforehand."),
  oauth: ResourceServerSchema.optional().describe("Takes access tokens (JWT) of an OAuth authorization server."),
});

const HttpLimitsSchema = z.strictObject({
  bodyBytes: Count.default(16 * 1024 * 1024).describe("Size of a request's body."),
  headerBytes: z
    .int()
    .min(1024)
    .default(16 * 1024)
    .describe("Size of a request's headers, all together."),
  requestsPerMinute: Count.optional().describe(
    "Requests per minute of one caller, or of one address where the caller is not known; 60 times `limits.callsPerMinute` if absent.",
  ),
  sessions: Count.default(5000).describe("Open sessions. Callers with `admin` get ten more."),
  sessionsPerToken: Count.optional().describe(
    "Open sessions of one token, and as many event streams and WebSockets. A fifth of `sessions` (of `streams`) if absent; all of them where only one token without `admin` can come in, or no `auth` is set.",
  ),
  sessionsPerUser: Count.optional().describe("The same for one user, whatever tokens they have."),
  streams: Count.default(5000).describe("Open event streams. Callers with `admin` get ten more."),
  connections: Count.default(10_000).describe("Open connections."),
  sessionIdleMs: Milliseconds.default(1_800_000).describe("Milliseconds after which an unused session ends."),
  requestTimeoutMs: Milliseconds.default(30_000).describe(
    "Milliseconds in which a request has to arrive; a client that takes nothing of its answer for as long is cut off.",
  ),
  shutdownMs: Milliseconds.default(10_000).describe("Milliseconds that calls under way get when the hub is stopped."),
});

export const HttpSchema = z.strictObject({
  host: Text.default("127.0.0.1").describe("Address to listen at. Any other than loopback needs `auth`."),
  port: z.int().min(0).max(65_535).default(4700).describe("Port to listen at; 0 takes any that is free."),
  publicUrl: z
    .string()
    .regex(/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/, "an http or https address without query")
    .optional()
    .describe("Address under which clients reach it, behind a reverse proxy."),
  allowedHosts: z
    .array(z.string().regex(/^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)$/, "a host name without port"))
    .prefault([])
    .describe("Further host names that clients may use."),
  cors: z
    .array(Origin)
    .prefault([])
    .describe(
      "Origins whose web pages may use it besides its own page, each in full: `http://localhost:6274` is the MCP Inspector's. There is no `*`.",
    ),
  allowedOrigins: z.array(Origin).prefault([]).describe("The earlier name of `cors`; both are read."),
  auth: HttpAuthSchema.optional().describe(
    "Who may enter. Without it everybody on this machine may, except as `admin`.",
  ),
  limits: HttpLimitsSchema.prefault({}).describe("What clients may use up."),
});

export type HttpConfig = z.output<typeof HttpSchema>;
export type TokenSettings = z.output<typeof TokenSchema>;
export type ResourceServerSettings = z.output<typeof ResourceServerSchema>;
