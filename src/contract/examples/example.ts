import type { InputOf, OperationName, OutputOf } from "../operations.ts";

/** One use of each operation, as the OpenAPI document and the docs show it. */
export type Examples<Names extends OperationName = OperationName> = {
  readonly [Name in Names]: { readonly input: InputOf<Name>; readonly output: OutputOf<Name> };
};
