/** Strings that the program around a model writes and a model obeys. In a result they are only text, so they are defused. */
import { normalise } from "../detect/normalise.ts";

/** Each match starts with the sign that is replaced. Bounded quantifiers only. */
const ANGLED =
  /<(?=\|\s?\/?[a-z_▁]{1,40}\s?\|>|\/?s>|\/?(?:start_of_turn|end_of_turn|bos|eos|pad|unk|sys|think|thinking)>|<\/?sys>>|\/?\s?(?:\w{1,12}:)?(?:function_calls?|function_results?|function|invoke|parameter|tool_calls?|tool_use|tool_uses|tool_result|tool_results|tool_response|tool_code|tool_output|system|system[-_]\w{1,20}|human|assistant|developer)(?=[\s>=/]))/g;
const BRACKETED = /\[(?=\/?(?:inst|tool_calls?|tool_results|available_tools|system_prompt|\/available_tools)\])/g;

/** `<|im_start|>` becomes `&lt;|im_start|>`, `[INST]` becomes `(INST]`: a person reads the same, a tokenizer does not. */
export function defused(text: string): string {
  if (!/[<[\u0080-\uffff]/.test(text)) return text;
  const normal = normalise(text);
  const cuts: { at: number; sign: string }[] = [];
  for (const found of normal.text.matchAll(ANGLED)) cuts.push({ at: normal.originalAt(found.index), sign: "&lt;" });
  for (const found of normal.text.matchAll(BRACKETED)) cuts.push({ at: normal.originalAt(found.index), sign: "(" });
  if (cuts.length === 0) return text;
  const parts: string[] = [];
  let from = 0;
  for (const { at, sign } of cuts.toSorted((a, b) => a.at - b.at)) {
    // Two signs can come from one character that folds into both.
    if (at < from) continue;
    parts.push(text.slice(from, at), sign);
    from = at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
  }
  parts.push(text.slice(from));
  return parts.join("");
}
