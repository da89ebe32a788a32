/** An HttpClient whose requests carry credentials that change: a token that is renewed before it ends or when refused. */
import { ToolcribError } from "../../model/errors.ts";
import type { CancelSignal } from "../../model/cancel.ts";
import { type HttpAnswer, HttpClient, type HttpRequest } from "./http-client.ts";
import type { Reach } from "./reach.ts";

/** What gives and renews them; `ServerCredentials` of the secrets is the one there is. */
export interface WireCredentials {
  /** Names in lower case. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Told of every 401 and 403. True: send the request once more, with what `headers()` gives then. */
  rejected(rejection: {
    readonly status: number;
    readonly challenge: string | undefined;
    readonly sent: Readonly<Record<string, string>>;
    readonly attempt: number;
  }): Promise<boolean>;
}

export class AuthorizedClient {
  readonly #client: HttpClient;
  readonly #credentials: WireCredentials | undefined;

  constructor(credentials: WireCredentials | undefined, reach?: Reach) {
    this.#client = new HttpClient(reach);
    this.#credentials = credentials;
  }

  /** As HttpClient's, and rejects with whatever the credentials reject with. */
  request(request: HttpRequest): Promise<HttpAnswer> {
    return this.#credentials === undefined
      ? this.#client.request(request)
      : this.#authorized(request, this.#credentials);
  }

  async #authorized(request: HttpRequest, credentials: WireCredentials): Promise<HttpAnswer> {
    for (let attempt = 1; ; attempt++) {
      const sent = await unlessAborted(credentials.headers(), request.signal);
      const answer = await this.#client.request({ ...request, headers: { ...request.headers, ...sent } });
      const { status } = answer;
      if (status !== 401 && status !== 403) return answer;
      const challenge = answer.headers["www-authenticate"];
      try {
        const again = await unlessAborted(credentials.rejected({ status, challenge, sent, attempt }), request.signal);
        if (!again || attempt > 1) return answer;
      } catch (error) {
        answer.body.destroy();
        throw error;
      }
      answer.body.on("error", () => {}).resume();
    }
  }

  destroy(): void {
    this.#client.destroy();
  }
}

/** Renewing goes on for those who still want it; who gave up does not wait for it. */
function unlessAborted<T>(work: Promise<T>, signal: CancelSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void =>
      reject(new ToolcribError("cancelled", "the request was cancelled", { details: { sent: false } }));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
