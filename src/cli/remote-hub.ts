/** A hub in another process or on another machine: finding it and sending requests to it. */
import { toolcribHome } from "../config/find-config.ts";
import { type HubRecord, readHubFiles } from "../hub/activity/hub-file.ts";
import { ToolcribError, isErrorObject } from "../model/errors.ts";
import { type JsonObject, parseJsonObject } from "../model/json.ts";
import { isLoopback } from "../base/network-address.ts";
import { HttpClient } from "../upstream/http/http-client.ts";
import type { Invocation } from "./command.ts";
import { readBytes } from "../base/read-bytes.ts";

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

  /** Rejects with the hub's own error, or with `server_unavailable` if there is no hub. */
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
        body: body && JSON.stringify(body),
        signal,
      });
      const tooLarge = (): Error =>
        new ToolcribError("too_large", `The hub's response is larger than ${MAX_RESPONSE_BYTES} bytes.`);
      const value = parseJsonObject((await readBytes(answer.body, MAX_RESPONSE_BYTES, tooLarge)).toString("utf8"));
      if (answer.status === 200 && value !== undefined) return value;
      const error = value?.["error"];
      if (!isErrorObject(error)) throw this.#noHub(answer.status);
      throw new ToolcribError(error.code, error.message, { hint: error.hint });
    } catch (error) {
      if (signal.aborted) throw new ToolcribError("timeout", `${this.url} did not respond within ${TIMEOUT_MS} ms.`);
      throw error;
    } finally {
      client.destroy();
    }
  }

  #noHub(status: number): ToolcribError {
    const message = `The server at ${this.url} is not a Toolcrib hub (HTTP ${status}).`;
    return new ToolcribError("server_unavailable", message, { hint: "Check --hub." });
  }
}

interface FindOptions {
  /** Whether the token in the hub's own file may be used. */
  readonly withOwnToken?: boolean;
}

/**
 * The hub of `--hub`, or the one hub that this user runs. A token from the hub's own file is sent only to the address in that
 * file: another program that listens under a different name of this machine must not get it.
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
    throw new ToolcribError("server_unavailable", "This user runs no hub.", {
      hint: "Start one with toolcrib serve, or name one with --hub <url>.",
    });
  }
  if (another === undefined) return first;
  throw new ToolcribError("invalid_arguments", `This user runs ${running.length} hubs.`, {
    hint: `Choose one: ${running.map(({ url }) => `--hub ${url}`).join(", ")}`,
  });
}

type Address = Pick<HubRecord, "url" | "token">;

function ownAddress({ url, token }: HubRecord): Address {
  return { url, token };
}

/** The running hub at an address of its own file. An exact match comes first. */
function addressOf(running: readonly HubRecord[], wanted: string): Address | undefined {
  const exactly = running.find(({ url }) => isSameAddress(url, wanted));
  if (exactly !== undefined) return ownAddress(exactly);
  const outside = running.find(({ publicUrl }) => publicUrl !== undefined && isSameAddress(publicUrl, wanted));
  if (outside?.publicUrl !== undefined) return { url: outside.publicUrl, token: outside.token };
  const canonical = (hostname: string): string => (LOOPBACK_NAMES.has(hostname) ? "localhost" : hostname);
  const byName = running.find(({ url }) => isSameAddress(url, wanted, canonical));
  return byName && ownAddress(byName);
}

/** People type any of these for this machine. Other loopback addresses are distinct. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isSameAddress(known: string, wanted: string, nameOf = (hostname: string): string => hostname): boolean {
  const [a, b] = [URL.parse(known), URL.parse(wanted)];
  if (a === null || b === null || a.protocol !== b.protocol || a.port !== b.port) return false;
  if (a.pathname.replace(/\/$/, "") !== b.pathname.replace(/\/$/, "")) return false;
  return nameOf(a.hostname) === nameOf(b.hostname);
}

function checkedUrl(address: string, hasToken: boolean): string {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--hub must be a URL such as http://127.0.0.1:4700.");
  }
  if (hasToken && url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new ToolcribError("invalid_arguments", `The token is not sent to ${url.host} over plain HTTP.`, {
      hint: "Use https, or run the command on the hub's machine.",
    });
  }
  return url.origin + url.pathname.replace(/\/$/, "");
}
