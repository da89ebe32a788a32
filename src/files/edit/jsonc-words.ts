/** What is wrong with a text, for each error of jsonc-parser. */
export const JSONC_ERROR_WORDS: Readonly<Record<string, string>> = {
  InvalidSymbol: "this is no JSON value",
  InvalidNumberFormat: "this is no number",
  PropertyNameExpected: "a key in double quotes is expected",
  ValueExpected: "a value is expected",
  ColonExpected: "a colon is expected",
  CommaExpected: "a comma is expected",
  CloseBraceExpected: "a closing } is expected",
  CloseBracketExpected: "a closing ] is expected",
  EndOfFileExpected: "nothing more is expected here",
  UnexpectedEndOfComment: "the comment is not closed",
  UnexpectedEndOfString: "the text is not closed",
  UnexpectedEndOfNumber: "the number is not complete",
  InvalidUnicode: "the unicode escape is wrong",
  InvalidEscapeCharacter: "the escape is wrong",
  InvalidCharacter: "the character is not allowed here",
};
