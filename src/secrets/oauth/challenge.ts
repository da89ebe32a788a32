/** What a server says in `WWW-Authenticate` about the login that it wants. */
export interface Challenge {
  readonly resourceMetadata?: URL;
  readonly scope?: string;
  readonly error?: string;
}

const PARAMETER = /(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g;

/** Null where no bearer token is asked for. */
export function readChallenge(header: string | undefined): Challenge | null {
  const bearer = header === undefined ? null : /(?:^|,)\s*Bearer\b([^]*)/i.exec(header.slice(0, 8192));
  if (bearer === null) return null;
  const found = new Map<string, string>();
  for (const [, name = "", quoted, plain] of (bearer[1] ?? "").matchAll(PARAMETER)) {
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
  }
  const metadata = URL.parse(found.get("resource_metadata") ?? "");
  const scope = found.get("scope");
  const error = found.get("error");
  return {
    ...(metadata === null ? {} : { resourceMetadata: metadata }),
    ...(scope === undefined || scope === "" ? {} : { scope }),
    ...(error === undefined ? {} : { error }),
  };
}
