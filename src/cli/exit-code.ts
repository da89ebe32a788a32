import { type ErrorCode, ERROR_TABLE } from "../model/errors.ts";

export function exitCodeOf(code: ErrorCode): number {
  return ERROR_TABLE[code].exit;
}
