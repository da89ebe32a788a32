/** A body against the shape that a provider documents. */
import type { z } from "zod";
import { RejectedRequest } from "./protocol.ts";

/** The body, or a rejection that names the first place that is wrong. */
export function readBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new RejectedRequest(`${issue?.path.join(".") || "body"}: ${issue?.message ?? "invalid"}`);
}
