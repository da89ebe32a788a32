/** `schema` and `openapi` print JSON with and without --json. What they print is loaded when it is asked for. */
import { VERSION } from "../../model/version.ts";
import type { Invocation } from "../command.ts";

export async function runSchema({ out, flags }: Invocation): Promise<number> {
  if (flags.has("skill")) out.value((await import("../../skills/schema/frontmatter-schema.ts")).skillJsonSchema());
  else out.value((await import("../../config/config-json-schema.ts")).configJsonSchema());
  return 0;
}

export async function runOpenapi({ out }: Invocation): Promise<number> {
  const { openApiDocument } = await import("../../doors/http/api/openapi-document.ts");
  out.value(openApiDocument(VERSION));
  return 0;
}
