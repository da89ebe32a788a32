/** Unique secrets, one for each place that takes one, and the search for them in whatever came out. */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Signs that are written differently in URLs, JSON and base64; still fit for a header. */
const AWKWARD = '+/=&"%<';

export class Canaries {
  readonly values = new Map<string, string>();

  /** A new secret for a place. `plain` ones have only letters and digits, for places that take nothing else. */
  make(place: string, kind: "awkward" | "plain" = "awkward"): string {
    const value = `cnry${randomBytes(9).toString("hex")}${kind === "plain" ? "" : AWKWARD}z`;
    this.values.set(place, value);
    return value;
  }

  /** Which secrets stand in the text, and in what form. Encoders of its own, so that it judges the redactor's. */
  foundIn(text: string): string[] {
    const compact = text.replace(/\s+/g, "");
    return [...this.values].flatMap(([place, value]) =>
      Object.entries(encodings(value)).flatMap(([form, encoded]) =>
        text.includes(encoded) || compact.includes(encoded) ? [`${place} (${form})`] : [],
      ),
    );
  }
}

function encodings(value: string): Record<string, string> {
  const bytes = Buffer.from(value);
  // The part in the middle that is the same whatever stands around it, for each of the three ways it can be shifted.
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift, "x"), bytes])
      .toString("base64")
      .slice(4, 20),
  );
  return {
    plain: value,
    "first half": value.slice(0, 20),
    url: encodeURIComponent(value),
    form: new URLSearchParams({ v: value }).toString().slice(2),
    base64: bytes.toString("base64"),
    base64url: bytes.toString("base64url"),
    "base64 inside 0": shifted[0] ?? "",
    "base64 inside 1": shifted[1] ?? "",
    "base64 inside 2": shifted[2] ?? "",
    hex: bytes.toString("hex"),
    json: JSON.stringify(value).slice(1, -1),
  };
}

/** Everything under a folder, names and contents. */
export function filesUnder(dir: string): string {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return entry.isFile() ? `${path}\n${readFileSync(path, "latin1")}\n${readFileSync(path, "utf8")}` : path;
    })
    .join("\n");
}
