/** The parts of a resource or of a prompt's message, told apart by how they are previewed. */
import { shownOf, resourceShown, type Shown } from "../tools/result-content.ts";

type Content = Readonly<Record<string, unknown>>;

export type Preview =
  | Exclude<Shown, { readonly kind: "resource" | "bytes" }>
  | { readonly kind: "markdown"; readonly text: string }
  /** To be opened or saved. */
  | { readonly kind: "file"; readonly type: string; readonly bytes: Uint8Array<ArrayBuffer> };

export interface Previewed {
  /** Empty for a text that is no resource. */
  readonly uri: string;
  readonly preview: Preview;
}

/** One of the `contents` of a resource. */
export function resourcePreview(content: Content): Previewed {
  const shown = resourceShown(content);
  if (shown.kind !== "resource") return { uri: "", preview: { kind: "unknown", type: "", value: content } };
  return { uri: shown.uri, preview: previewOf(shown.shown, shown.uri, content) };
}

/** The content of a message. */
export function messagePreview(content: Content): Previewed {
  const { resource } = content;
  if (content["type"] === "resource" && typeof resource === "object" && resource !== null)
    return resourcePreview({ ...resource });
  return { uri: "", preview: previewOf(shownOf(content), "", content) };
}

function previewOf(shown: Shown, uri: string, content: Content): Preview {
  if (shown.kind === "text" && isMarkdown(uri, content["mimeType"])) return { kind: "markdown", text: shown.text };
  // A resource holds no other resource, and bytes are looked at below.
  if (shown.kind === "resource") return previewOf(shown.shown, uri, content);
  if (shown.kind !== "bytes") return shown;
  const bytes = bytesOf(content["blob"]);
  return bytes === undefined
    ? { kind: "unknown", type: shown.type, value: content }
    : { kind: "file", type: shown.type, bytes };
}

function isMarkdown(uri: string, type: unknown): boolean {
  if (typeof type === "string" && type !== "" && type !== "text/plain") return /^text\/(?:x-)?markdown\b/i.test(type);
  return /\.(?:md|markdown)$/i.test(uri);
}

function bytesOf(base64: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (typeof base64 !== "string") return undefined;
  try {
    return Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** The last part of a URI, as a name for a file. */
export function fileName(uri: string, type: string): string {
  const [path = ""] = uri.split(/[?#]/);
  const last = path.slice(path.lastIndexOf("/") + 1).replaceAll(/[^\w.-]+/g, "_");
  const name = last === "" ? "resource" : last;
  return type === "application/pdf" && !name.endsWith(".pdf") ? `${name}.pdf` : name;
}
