/** One typed method for each operation of the contract, all of them over one `call`. */
import type { InputOf, OperationName, OutputOf } from "../contract/operations.ts";
import { OPERATION_NAMES } from "./rest-request.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Where every input may be left out, the object may be as well. */
type Arguments<Input> =
  Input extends Record<string, never>
    ? [input?: Input, options?: CallOptions]
    : Partial<Input> extends Input
      ? [input?: Input, options?: CallOptions]
      : [input: Input, options?: CallOptions];

export type OperationMethods = {
  [Name in OperationName]: (...given: Arguments<InputOf<Name>>) => Promise<OutputOf<Name>>;
};

/** Operations whose answer is a page of a list. */
export type ListName = {
  [Name in OperationName]: "cursor" extends keyof InputOf<Name> ? Name : never;
}[OperationName];

/** What such a list is made of. */
export type ItemOf<Name extends ListName> = {
  [Key in keyof OutputOf<Name>]-?: OutputOf<Name>[Key] extends readonly (infer Item)[] ? Item : never;
}[keyof OutputOf<Name>];

abstract class Caller {
  abstract call<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
    options?: CallOptions,
  ): Promise<OutputOf<Name>>;
}

for (const name of OPERATION_NAMES) {
  Object.defineProperty(Caller.prototype, name, {
    value(this: Caller, input: InputOf<typeof name> = {}, options: CallOptions = {}) {
      return this.call(name, input, options);
    },
    configurable: true,
    writable: true,
  });
}

/** The loop above has defined a method of every operation's name on its prototype. */
export const OperationCaller = Caller as unknown as abstract new () => Caller & OperationMethods;
