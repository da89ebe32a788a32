import { TOO_DEEP } from "../depth.ts";

/** What is wrong with a text, for each error of the yaml package; its own messages may quote the text. */
export const YAML_ERROR_WORDS: Readonly<Record<string, string>> = {
  ALIAS_PROPS: "an alias has an anchor or tag of its own",
  BAD_ALIAS: "the alias is wrong",
  BAD_COLLECTION_TYPE: "the tag does not fit what follows",
  BAD_DIRECTIVE: "the directive is wrong",
  BAD_DQ_ESCAPE: "the escape is wrong",
  BAD_INDENT: "the indentation is wrong",
  BAD_PROP_ORDER: "an anchor or tag stands in the wrong place",
  BAD_SCALAR_START: "a plain value cannot begin with this character",
  BLOCK_AS_IMPLICIT_KEY: "a map or list stands where a value is expected",
  BLOCK_IN_FLOW: "a block stands between brackets",
  DUPLICATE_KEY: "this key is written twice",
  KEY_OVER_1024_CHARS: "the key is too long",
  MISSING_CHAR: "a closing bracket, quote, comma, colon or space is missing",
  MULTILINE_IMPLICIT_KEY: "a key goes over several lines",
  MULTIPLE_ANCHORS: "there are two anchors",
  MULTIPLE_DOCS: "there is more than one document",
  MULTIPLE_TAGS: "there are two tags",
  RESOURCE_EXHAUSTION: TOO_DEEP,
  TAB_AS_INDENT: "tabs cannot indent",
  TAG_RESOLVE_FAILED: "the tag is unknown or does not fit",
  UNEXPECTED_TOKEN: "this does not belong here",
};
