import { openApiDocument } from "../../doors/http/api/openapi-document.ts";
import { VERSION } from "../../model/version.ts";
import type { Invocation } from "../command.ts";

/** The same with and without --json: it is JSON either way. */
export async function run({ out }: Invocation): Promise<number> {
  out.value(openApiDocument(VERSION));
  return 0;
}
