import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { MASK } from "../../secrets/mask.ts";

/** What an entry shows in place of a secret is no secret: whoever sends it back has read it here. */
export function refuseMask(given: JsonObject): void {
  const waiting: { value: unknown; path: readonly string[] }[] = [{ value: given, path: [] }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, path } = next;
    if (typeof value === "string" && value.includes(MASK)) {
      const where = path.join(".");
      throw new ToolcribError("invalid_arguments", `${where} holds ${MASK}, which stands for a hidden secret.`, {
        hint: "Leave the key out to keep it, or write the secret or a reference anew.",
        details: { where: [where] },
      });
    }
    if (typeof value !== "object" || value === null) continue;
    // Entries are shallow; what is deeper is refused by others, and a path as long as that would cost.
    for (const [key, inner] of Object.entries(value)) waiting.push({ value: inner, path: [...path.slice(0, 3), key] });
  }
}
