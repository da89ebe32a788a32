import { ToolcribError } from "../model/errors.ts";

/** The client of NATS is installed only by those who run a cluster. */
export async function loadNats() {
  try {
    const [transport, jetstream, kv] = await Promise.all([
      import("@nats-io/transport-node"),
      import("@nats-io/jetstream"),
      import("@nats-io/kv"),
    ]);
    return { transport, jetstream, kv };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    const name = /'(@nats-io\/[a-z-]+)'/.exec(error.message)?.[1] ?? "@nats-io/transport-node";
    throw new ToolcribError("invalid_config", `A cluster is configured, and the package "${name}" is not installed.`, {
      hint: "npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv",
      cause: error,
    });
  }
}

export type NatsPackages = Awaited<ReturnType<typeof loadNats>>;
