/** `WWW-Authenticate` as RFC 6750 and RFC 9728 want it. */
export interface Challenge {
  /** Absent if the request held no credentials at all: then RFC 6750 wants none named. */
  readonly error?: "invalid_token" | "insufficient_scope";
  readonly description?: string;
  /** What an access token would need. */
  readonly scopes?: readonly string[];
  /** Where the protected resource metadata is, if access tokens are taken. */
  readonly metadata?: string | undefined;
}

export function challengeHeader({ error, description, scopes = [], metadata }: Challenge): string {
  const parameters: [name: string, value: string][] = [["realm", "toolcrib"]];
  if (error !== undefined) parameters.push(["error", error]);
  if (description !== undefined) parameters.push(["error_description", description]);
  if (scopes.length > 0) parameters.push(["scope", scopes.join(" ")]);
  if (metadata !== undefined) parameters.push(["resource_metadata", metadata]);
  return `Bearer ${parameters.map(([name, value]) => `${name}="${quotable(value)}"`).join(", ")}`;
}

/** RFC 6750 allows neither quote nor backslash in its values, and headers are ASCII. */
function quotable(text: string): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "'");
}
