/** Pieces of malicious texts. They are put together when a test runs, so that no file of the repository holds one. */
export const CURL = ["cu", "rl"].join("");
export const WGET = ["wg", "et"].join("");
export const BASH = ["ba", "sh"].join("");
export const SH = ["s", "h"].join("");
export const B64D = ["base64", " -", "d"].join("");
export const EVAL = ["ev", "al"].join("");
export const EXEC = ["ex", "ec"].join("");
export const IEX = ["i", "ex"].join("");
export const POWERSHELL = ["power", "shell"].join("");
/** Addresses that nobody has, or that were taken off the net long ago, and one of the ranges for examples. */
export const NUMBER = [45, 137, 22, 91].join(".");
export const EXAMPLE_NUMBER = [203, 0, 113, 66].join(".");
export const STRANGE = ["setup-delivery", "net"].join(".");
export const TCP = ["/dev", "tcp"].join("/");
export const KEYS = ["~/", ".ss", "h/id_", "rsa"].join("");
export const AWS = ["~/", ".aws", "/cred", "entials"].join("");

export const base64 = (text: string): string => Buffer.from(text).toString("base64");
export const hex = (text: string): string => Buffer.from(text).toString("hex");
export const wide = (text: string): string => Buffer.from(text, "utf16le").toString("base64");
export const fence = (code: string, language = "bash"): string => `\`\`\`${language}\n${code}\n\`\`\``;
/** Characters that spell ASCII and that nothing shows. */
export const tags = (text: string): string =>
  [...text].map((letter) => String.fromCodePoint(0xe0000 + (letter.codePointAt(0) ?? 0))).join("");
