import type { Invocation } from "../command.ts";

/** The same with and without --json: it is JSON either way. */
export async function run({ out, flags }: Invocation): Promise<number> {
  out.value(await (flags.has("skill") ? skillSchema() : configSchema()));
  return 0;
}

async function configSchema(): Promise<unknown> {
  return (await import("../../config/config-schema.ts")).configJsonSchema();
}

async function skillSchema(): Promise<unknown> {
  return (await import("../../skills/schema/frontmatter-schema.ts")).skillJsonSchema();
}
