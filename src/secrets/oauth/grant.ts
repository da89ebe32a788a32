/** Grant: what is kept of a login at one server, for one user, at one authorization server. */
import { z } from "zod";
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";

const ClientSchema = z.object({
  id: z.string(),
  /** Only of a client that registered itself: a configured secret stays where it is configured. */
  secret: z.string().optional(),
  authMethod: z.string().optional(),
  origin: z.enum(["registered", "configured", "document"]),
  redirectUri: z.string().optional(),
});

const TokensSchema = z.object({
  access: z.string(),
  refresh: z.string().optional(),
  scope: z.string().optional(),
  /** Epoch milliseconds; absent if the authorization server did not say. */
  expiresAt: z.number().optional(),
});

export const GrantSchema = z.object({
  version: z.literal(1),
  type: z.enum(["oauth", "client-credentials"]),
  server: z.string(),
  /** The server's address without query, which may hold secrets. */
  url: z.string(),
  user: z.string().optional(),
  /** Tokens and client are this issuer's and are never sent to another one. */
  issuer: z.string(),
  /** The RFC 8707 resource that the tokens are for. */
  resource: z.string(),
  client: ClientSchema,
  /** Absent when they were refused: the client is kept for the next login. */
  tokens: TokensSchema.optional(),
  /** Scopes that were asked for, to tell a changed config. */
  asked: z.string().optional(),
  /** Scopes that the server missed; asked for at the next login. */
  missed: z.string().optional(),
});

export type Grant = z.output<typeof GrantSchema>;
export type GrantClient = Grant["client"];
export type Tokens = z.output<typeof TokensSchema>;

/** A token is renewed this long before its end, so that none ends on its way to the server. */
const SKEW_MS = 60_000;

export function isFresh(tokens: Tokens, now: number): boolean {
  return tokens.expiresAt === undefined || tokens.expiresAt - SKEW_MS > now;
}

export function isOver(tokens: Tokens, now: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt <= now;
}

/** The part of an answer of the token endpoint that counts. */
interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string | undefined;
  readonly scope?: string | undefined;
  readonly expires_in?: number | undefined;
}

export function tokensFrom(answer: TokenAnswer, clock: Clock, asked?: string): Tokens {
  if (answer.token_type.toLowerCase() !== "bearer") {
    const text = `the authorization server gave a token of type ${JSON.stringify(answer.token_type.slice(0, 40))}`;
    throw new ToolcribError("unauthorized", `${text}; only bearer tokens are understood`);
  }
  // Without `scope` in the answer, what was asked for was granted (RFC 6749, 5.1).
  const scope = answer.scope ?? asked;
  return {
    access: answer.access_token,
    refresh: answer.refresh_token,
    scope,
    ...(answer.expires_in === undefined ? {} : { expiresAt: clock.now() + answer.expires_in * 1000 }),
  };
}
