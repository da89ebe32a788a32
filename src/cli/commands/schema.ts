import { configJsonSchema } from "../../config/json-schema.ts";
import type { Invocation } from "../command.ts";

/** The same with and without --json: it is JSON either way. */
export function run({ out }: Invocation): Promise<number> {
  out.value(configJsonSchema());
  return Promise.resolve(0);
}
