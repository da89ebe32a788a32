/** Editors that change one entry of a file that belongs to somebody else, and nothing but that. */
import { checkedEditor } from "./checked-editor.ts";
import { JSON5_SURGEON, JSONC } from "./json-editors.ts";
import type { TextEditor } from "./text-editor.ts";
import { TOML } from "./toml/toml-surgeon.ts";
import { YAML } from "./yaml/yaml-surgeon.ts";

export type { PathStep, TextEditor } from "./text-editor.ts";
export { TextSyntaxError } from "./text-syntax-error.ts";

const EDITORS: Readonly<Record<TextEditor["format"], TextEditor>> = {
  jsonc: checkedEditor(JSONC),
  json5: checkedEditor(JSON5_SURGEON),
  yaml: checkedEditor(YAML),
  toml: checkedEditor(TOML),
};

export function editorFor(format: TextEditor["format"]): TextEditor {
  return EDITORS[format];
}
