/** Waits until a server that was just started answers over HTTP. */
import { setTimeout as delay } from "node:timers/promises";
import { HttpClient } from "../../http/http-client.ts";
import type { ContainerLaunch } from "./container-cage.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/** Where the engine published the port, such as 127.0.0.1:41853. Rejects when the signal aborts. */
export async function publishedAddress(launch: ContainerLaunch, port: number, signal: AbortSignal): Promise<string> {
  for (const pause of pauses()) {
    const { code, stdout } = await launch.ask(["port", launch.name, `${port}/tcp`], signal);
    const address = stdout.split("\n").find((line) => /^127\.0\.0\.1:\d+$/.test(line.trim()));
    if (code === 0 && address !== undefined) return address.trim();
    await delay(pause, undefined, { signal });
  }
  throw new Error("unreachable");
}

/** Any answer will do. Engines take connections before the server does, so a connection alone says nothing. */
export async function awaitAnswer(url: URL, signal: AbortSignal): Promise<void> {
  const client = new HttpClient();
  try {
    for (const pause of pauses()) {
      const answer = await client
        // Not what opens an event stream.
        .request({ method: "GET", url, headers: { accept: "application/json" }, signal })
        .catch(() => undefined);
      if (answer !== undefined) {
        answer.body.on("error", () => {}).destroy();
        return;
      }
      await delay(pause, undefined, { signal });
    }
  } finally {
    client.destroy();
  }
}

/** Without end: who waits gives a signal. */
function* pauses(): Generator<number> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) yield pause;
}
