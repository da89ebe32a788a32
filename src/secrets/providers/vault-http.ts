/** One question to Vault over HTTP, bounded in size and time. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { SecretFailure } from "../provider.ts";
import { checkAddress } from "../safe-address.ts";

interface Question {
  readonly token?: string;
  readonly namespace: string | undefined;
  readonly signal: AbortSignal;
  /** Posted; without it the question is a GET. */
  readonly body?: JsonObject;
}

export interface VaultAnswer {
  readonly status: number;
  /** Empty where the answer was no JSON object and the status says enough. */
  readonly body: JsonObject;
}

const LARGEST_ANSWER = 1024 * 1024;
const REDIRECTS = new Set([301, 302, 307, 308]);

export async function askVault(address: URL, path: string, question: Question): Promise<VaultAnswer> {
  const url = new URL(address);
  url.pathname = `${address.pathname.replace(/\/$/, "")}/v1/${path.toWellFormed().split("/").map(encodeURIComponent).join("/")}`;
  const response = await send(url, question);
  if (!REDIRECTS.has(response.status)) return read(response);
  // A standby node names the active one. One step only, and never from https to plain http elsewhere: the token goes along.
  await response.body?.cancel();
  const next = new URL(response.headers.get("location") ?? "", url);
  if (url.protocol === "https:" && next.protocol !== "https:")
    throw new SecretFailure("was not given: Vault redirects to plain http");
  return read(await send(checkAddress(next.href, "the address that Vault redirects to"), question));
}

async function send(url: URL, { token, namespace, signal, body }: Question): Promise<Response> {
  const headers: Record<string, string> = { "X-Vault-Request": "true", Accept: "application/json" };
  if (token !== undefined) headers["X-Vault-Token"] = token;
  if (namespace) headers["X-Vault-Namespace"] = namespace;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers,
      signal,
      redirect: "manual",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

async function read(response: Response): Promise<VaultAnswer> {
  const text = await textOf(response);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Judged below; the parser's message would quote the answer.
  }
  if (isJsonObject(body)) return { status: response.status, body };
  if (response.status !== 200) return { status: response.status, body: {} };
  throw new SecretFailure("was not given: Vault answered something that is no JSON object");
}

async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    // The types of the web platform do not know that this stream can be iterated over.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > LARGEST_ANSWER) throw new SecretFailure("was not given: Vault's answer is larger than 1 MiB");
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    if (error instanceof SecretFailure) throw error;
    throw new SecretFailure("was not given: Vault's answer broke off", { passing: true, cause: error });
  }
  return text + decoder.decode();
}

/** The system's own word, such as ECONNREFUSED: the rest of such messages varies. */
function unreachable(url: URL, error: unknown): SecretFailure {
  const cause = error instanceof Error ? error.cause : undefined;
  const code =
    cause instanceof Error && "code" in cause ? String(cause.code) : error instanceof Error ? error.name : "unknown";
  // A header that cannot be sent, such as a token with a line break, is no fault of the network.
  const passing = cause !== undefined || code === "AbortError" || code === "TimeoutError";
  return new SecretFailure(`was not given: Vault at ${url.host} cannot be reached (${code})`, {
    passing,
    cause: error,
  });
}
