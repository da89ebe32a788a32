/** Reads a small JSON document of an authorization server: bounded in time and size, and without following redirects. */
import { ToolcribError } from "../../../model/errors.ts";
import { isLoopback } from "../../../model/loopback.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";

const TIMEOUT_MS = 5_000;
const MOST_BYTES = 1024 * 1024;

/** Undefined if there is no such document (404). Rejects with `server_unavailable` for everything else that is wrong. */
export async function fetchJson(address: string): Promise<JsonObject | undefined> {
  const url = URL.parse(address);
  if (url === null || !isSafe(url)) throw unavailable(`${address} is no https address`);
  try {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
    const value: unknown = JSON.parse(await boundedText(response));
    if (!isJsonObject(value)) throw new Error("no JSON object");
    return value;
  } catch (error) {
    throw unavailable(`${url.origin}${url.pathname} cannot be read (${reasonOf(error)})`, error);
  }
}

/** Keys that came over an open network could be anybody's. */
export function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

export function unavailable(what: string, cause?: unknown): ToolcribError {
  return new ToolcribError("server_unavailable", `Access tokens cannot be checked now: ${what}.`, {
    hint: "Try again later. The token may well be valid.",
    cause,
  });
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error(`more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown reason";
  // fetch says "fetch failed" and keeps the reason in its cause.
  const { cause } = error;
  if (cause instanceof Error && "code" in cause) return String(cause.code);
  return error instanceof SyntaxError ? "no JSON" : error.message;
}
