/** The one form of errors, at every operation. */
import { z } from "zod";
import { ERROR_TABLE, type ErrorCode } from "../model/errors.ts";

// The table's keys are its codes, and there is at least one.
const CODES = Object.keys(ERROR_TABLE) as [ErrorCode, ...ErrorCode[]];

export const ErrorAnswerSchema = z
  .object({
    error: z.object({
      code: z.enum(CODES),
      message: z.string().describe("What is wrong, and where."),
      hint: z.string().optional().describe("What to do about it."),
      details: z
        .record(z.string(), z.unknown())
        .optional()
        .describe("For programs. Of `invalid_arguments`: `issues`, with the path and message of each."),
    }),
  })
  .meta({ id: "Error" });
