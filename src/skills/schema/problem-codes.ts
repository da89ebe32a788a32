/** The codes of what validation finds by itself, and what they mean. Programs may rely on them. */
export const PROBLEM_CODES = {
  MISSING_FIELD: "A field that every skill must have is not there.",
  INVALID_NAME: "The name has other characters than a-z, 0-9 and single hyphens between them.",
  INVALID_NAME_LENGTH: "The name is empty or has more than 64 characters.",
  NAME_MISMATCH: "The name is not the name of the folder.",
  INVALID_DESCRIPTION_LENGTH: "The description is empty or has more than 1024 characters.",
  INVALID_COMPATIBILITY_LENGTH: "The compatibility is empty or has more than 500 characters.",
  INVALID_METADATA: "A value in metadata is not text.",
  INVALID_ALLOWED_TOOLS: "allowed-tools is not a text of tools with spaces between them.",
  INVALID_TYPE: "A value is of another type than it must be.",
  INVALID_VALUE: "A value is none of those that are allowed.",
  UNKNOWN_FIELD: "The standard has no such field (only with --strict).",
} as const;

export type ProblemCode = keyof typeof PROBLEM_CODES;
