/** A file that goes with the prompt: text as an embedded resource, an image as an image. */
import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";

/** What providers take at most for an image; a text of that size would fill most models' context too. */
const LARGEST = 5 * 1024 * 1024;

const IMAGES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};

export async function attachedFile(path: string, cwd: string): Promise<ContentBlock> {
  const file = resolve(cwd, path);
  const bytes = await read(file, path);
  const image = IMAGES[extname(file).toLowerCase()];
  if (image !== undefined) return { type: "image", data: bytes.toString("base64"), mimeType: image };
  return {
    type: "resource",
    resource: { uri: pathToFileURL(file).href, mimeType: "text/plain", text: textOf(bytes, path) },
  };
}

async function read(file: string, path: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > LARGEST) {
      throw new ToolcribError("too_large", `${path} has ${size} bytes; ${LARGEST} go with a prompt at most.`, {
        hint: "Name the file in the prompt and let the agent read it with a tool.",
      });
    }
    return await readFile(file);
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    // Only Node's file system throws here, and its errors have a code.
    const { code } = error as NodeJS.ErrnoException;
    throw new ToolcribError(
      "invalid_arguments",
      `--file ${path} cannot be read${code === undefined ? "" : ` (${code})`}.`,
    );
  }
}

function textOf(bytes: Buffer, path: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\u0000")) return text;
  } catch {
    // Said below.
  }
  throw new ToolcribError(
    "invalid_arguments",
    `--file ${path} is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP image.`,
  );
}
