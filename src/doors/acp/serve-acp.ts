/** The ACP door: an agent for editors and other clients of the Agent Client Protocol, one connection on two streams. */
import type { AcpDoorOptions } from "./acp-options.ts";

export type { AcpDoorOptions } from "./acp-options.ts";

/**
 * Serves until the input ends or the signal aborts; everything that belongs to it is closed then. The hub is not.
 *
 *     await serveAcp({ hub, input: process.stdin, output: process.stdout, env: process.env, log: console.error });
 */
export async function serveAcp(options: AcpDoorOptions): Promise<void> {
  // The protocol's SDK is only loaded where it is spoken.
  const { connectAcp } = await import("./acp-connection.ts");
  await connectAcp(options);
}
