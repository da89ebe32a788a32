import type { Invocation } from "../command.ts";
import { switchServer } from "../switch-server.ts";

export function run(invocation: Invocation): Promise<number> {
  return switchServer(invocation, "enabled");
}
