/** `key=value`, `key:=JSON` and `key=@file` as typed on the command line. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";

export type Assignment =
  /** To be read as the schema says. */
  | { readonly key: string; readonly kind: "text"; readonly text: string }
  /** Read as it stands. */
  | { readonly key: string; readonly kind: "json"; readonly value: unknown }
  /** Bytes of a file: text, or base64 where the schema says so. */
  | { readonly key: string; readonly kind: "file"; readonly bytes: Buffer };

export function parseAssignment(typed: string, cwd: string): Assignment {
  const at = typed.indexOf("=");
  if (at <= 0 || typed.startsWith(":=")) {
    throw new ToolcribError("invalid_arguments", `"${typed}" is not key=value.`, {
      hint: "Write key=value, key:=JSON or key=@file; a JSON object goes after --args.",
    });
  }
  const isJson = typed[at - 1] === ":";
  const key = typed.slice(0, isJson ? at - 1 : at);
  const text = typed.slice(at + 1);
  if (text.startsWith("@@")) return fromText(key, text.slice(1), isJson);
  if (!text.startsWith("@")) return fromText(key, text, isJson);
  const bytes = readBytes(key, text.slice(1), cwd);
  return isJson ? fromText(key, bytes.toString("utf8"), true) : { key, kind: "file", bytes };
}

function fromText(key: string, text: string, isJson: boolean): Assignment {
  if (!isJson) return { key, kind: "text", text };
  try {
    return { key, kind: "json", value: JSON.parse(text) };
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `Argument "${key}" is not valid JSON.`, {
      hint: `Use ${key}=… for plain text.`,
      cause: error,
    });
  }
}

function readBytes(key: string, path: string, cwd: string): Buffer {
  try {
    return readFileSync(resolve(cwd, path));
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `Argument "${key}": the file "${path}" cannot be read.`, {
      hint: `For a text that begins with @ write ${key}=@@${path}`,
      cause: error,
    });
  }
}
