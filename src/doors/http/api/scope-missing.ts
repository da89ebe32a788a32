import type { Scope } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";

export function scopeMissing(scope: Scope): ToolcribError {
  return new ToolcribError("denied", `This needs the scope "${scope}".`, {
    hint: "http.auth says which scopes a token has.",
  });
}
