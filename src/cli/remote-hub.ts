/** A hub that runs already, in another process or on another machine: which one is meant, and how to ask it. */
import type { IncomingMessage } from "node:http";
import { toolcribHome } from "../config/find-config.ts";
import { type HubRecord, readHubFiles } from "../hub/activity/hub-file.ts";
import { type ErrorCode, ERROR_TABLE, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { isLoopback } from "../base/network-address.ts";
import { HttpClient } from "../upstream/http/http-client.ts";
import type { Invocation } from "./command.ts";

const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

export class RemoteHub {
  /** Without a slash at its end. */
  readonly url: string;
  readonly #token: string | undefined;

  constructor(url: string, token: string | undefined) {
    this.url = url;
    this.#token = token;
  }

  /** Rejects with the hub's own error, or with `server_unavailable` where there is no hub. */
  async request(method: "GET" | "POST", path: string, body?: JsonObject): Promise<JsonObject> {
    const client = new HttpClient();
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const answer = await client.request({
        method,
        url: new URL(this.url + path),
        headers: {
          accept: "application/json",
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal,
      });
      const value = parse(await textOf(answer.body));
      if (answer.status === 200 && value !== undefined) return value;
      throw errorIn(value) ?? this.#noHub(answer.status);
    } catch (error) {
      if (signal.aborted) throw new ToolcribError("timeout", `${this.url} did not answer within ${TIMEOUT_MS} ms.`);
      throw error;
    } finally {
      client.destroy();
    }
  }

  #noHub(status: number): ToolcribError {
    return new ToolcribError("server_unavailable", `What answers at ${this.url} is no Toolcrib hub (HTTP ${status}).`, {
      hint: "Check --hub.",
    });
  }
}

interface FindOptions {
  /** Whether the hub's own token is taken from its file. False: only one that was given counts. */
  readonly withOwnToken?: boolean;
}

/**
 * By `--hub`, otherwise the one hub that runs for this user. The hub's own file gives the token where it can, and then the
 * address as well: what else listens under another name of this machine must not get the token.
 */
export async function findRunningHub(
  { flags, env, out }: Invocation,
  { withOwnToken = true }: FindOptions = {},
): Promise<RemoteHub> {
  const running = await readHubFiles(toolcribHome(env));
  const wanted = flags.text("hub");
  const known = wanted === undefined ? ownAddress(onlyHub(running)) : addressOf(running, wanted);
  const token = flags.text("token") ?? (withOwnToken ? known?.token : undefined) ?? tokenOf(env);
  if (token !== undefined) out.redactor.addCredential(token);
  return new RemoteHub(checkedUrl(known?.url ?? wanted ?? "", token !== undefined), token);
}

export function tokenOf(env: NodeJS.ProcessEnv): string | undefined {
  return env["TOOLCRIB_TOKEN"] || undefined;
}

function onlyHub(running: readonly HubRecord[]): HubRecord {
  const [first, another] = running;
  if (first === undefined) {
    throw new ToolcribError("server_unavailable", "No hub runs for this user.", {
      hint: "toolcrib serve starts one; --hub <url> names one elsewhere.",
    });
  }
  if (another === undefined) return first;
  throw new ToolcribError("invalid_arguments", `${running.length} hubs run for this user.`, {
    hint: `Choose one: ${running.map(({ url }) => `--hub ${url}`).join(", ")}`,
  });
}

type Address = Pick<HubRecord, "url" | "token">;

function ownAddress({ url, token }: HubRecord): Address {
  return { url, token };
}

/** The hub that is meant, at an address that its file gives. One that is written alike comes first. */
function addressOf(running: readonly HubRecord[], wanted: string): Address | undefined {
  const exactly = running.find(({ url }) => isSameAddress(url, wanted));
  if (exactly !== undefined) return ownAddress(exactly);
  const outside = running.find(({ publicUrl }) => publicUrl !== undefined && isSameAddress(publicUrl, wanted));
  if (outside?.publicUrl !== undefined) return { url: outside.publicUrl, token: outside.token };
  const byName = running.find(({ url }) => isSameAddress(url, wanted, canonicalHostname));
  return byName && ownAddress(byName);
}

/** The usual names of this machine, of which people type any. Of its other loopback addresses each is its own. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

function canonicalHostname(hostname: string): string {
  return LOOPBACK_NAMES.has(hostname) ? "localhost" : hostname;
}

function isSameAddress(known: string, wanted: string, nameOf = (hostname: string): string => hostname): boolean {
  const [a, b] = [URL.parse(known), URL.parse(wanted)];
  if (a === null || b === null || a.protocol !== b.protocol || a.port !== b.port) return false;
  if (a.pathname.replace(/\/$/, "") !== b.pathname.replace(/\/$/, "")) return false;
  return nameOf(a.hostname) === nameOf(b.hostname);
}

function checkedUrl(address: string, hasToken: boolean): string {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--hub must be an address such as http://127.0.0.1:4700.");
  }
  if (hasToken && url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new ToolcribError("invalid_arguments", `A token is not sent to ${url.host} over plain http.`, {
      hint: "Use https, or run the command on the machine of the hub.",
    });
  }
  return url.origin + url.pathname.replace(/\/$/, "");
}

async function textOf(body: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    // A stream without an encoding gives buffers.
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > MAX_RESPONSE_BYTES)
      throw new ToolcribError("too_large", `The hub's answer has more than ${MAX_RESPONSE_BYTES} bytes.`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function errorIn(value: JsonObject | undefined): ToolcribError | undefined {
  const error = value?.["error"];
  if (!isJsonObject(error) || typeof error["message"] !== "string" || !isErrorCode(error["code"])) return undefined;
  const { hint } = error;
  return new ToolcribError(error["code"], error["message"], { hint: typeof hint === "string" ? hint : undefined });
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
}
