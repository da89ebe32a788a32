/**
 * Masks what looks like a credential by its shape alone, for text that may quote a program or a server. Every pattern
 * is linear: it is fixed in length, or it can only begin where a word does, so no character is read again and again.
 */
import { looksLikeCredential } from "./looks-like-secret.ts";
import { MASK } from "./mask.ts";

/** Prefixes that makers of tokens put there so that tokens can be recognised. */
const PREFIXED = [
  "gh[pousr]_[A-Za-z0-9]{20,}",
  "github_pat_[A-Za-z0-9_]{20,}",
  "gl(?:pat|ptt|rt|dt|oas)-[A-Za-z0-9_-]{16,}",
  "sk-[A-Za-z0-9_-]{16,}",
  "[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}",
  "whsec_[A-Za-z0-9]{16,}",
  "xox[abeoprs]-[A-Za-z0-9-]{8,}",
  "xapp-[A-Za-z0-9-]{16,}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  "AIza[A-Za-z0-9_-]{30,}",
  "ya29\\.[A-Za-z0-9_-]{20,}",
  "hv[sbr]\\.[A-Za-z0-9_-]{20,}",
  "npm_[A-Za-z0-9]{30,}",
  "pypi-[A-Za-z0-9_-]{30,}",
  "hf_[A-Za-z0-9]{24,}",
  "dop_v1_[a-f0-9]{32,}",
  "lin_api_[A-Za-z0-9]{20,}",
  "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{24,}",
  "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}",
  // A JSON Web Token: two parts of JSON in base64, and a signature.
  "eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}(?:\\.[A-Za-z0-9_-]*)?",
];

const TOKENS = new RegExp(`(?<![A-Za-z0-9_-])(?:${PREFIXED.join("|")})`, "g");
/** Without its end the rest is masked: it is the key that was cut off. */
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g;
const AUTHORIZATION = /\b(Bearer|Basic)(\s{1,4}|%20|\+)([A-Za-z0-9._~+/=-]{8,})/gi;
const USERINFO = /\b([a-z][a-z0-9+.-]{1,20}:\/\/)([^\s/?#@"'<>]{1,512})@/gi;
/** `GITHUB_TOKEN=abc`, `?api_key=abc`, `"password":"abc"`, `x-api-key: abc`. */
const NAMED = /(?<![A-Za-z0-9_.-])([A-Za-z][A-Za-z0-9_.-]{1,63})(=|["']:\s{0,4}["']|:\s{0,4}(?=\S{12}))([^\s"'&;,<>(){}]{4,})/g;

export function maskTokens(text: string): string {
  if (text.length < 8) return text;
  return text
    .replace(PRIVATE_KEY, MASK)
    .replace(TOKENS, MASK)
    .replace(AUTHORIZATION, (whole, scheme: string, gap: string, value: string) =>
      isRandom(value) ? `${scheme}${gap}${MASK}` : whole,
    )
    .replace(USERINFO, (whole, scheme: string, user: string) => (user === "git" ? whole : `${scheme}${MASK}@`))
    .replace(NAMED, (whole, name: string, sign: string, value: string) =>
      isNamedSecret(name, sign, value) ? `${name}${sign}${MASK}` : whole,
    );
}

/** Prose such as "Bearer authentication" is not; it has neither digits nor capitals inside. */
function isRandom(value: string): boolean {
  return /\d/.test(value) || /[a-z][A-Z]/.test(value) || value.endsWith("=") || value.length >= 32;
}

function isNamedSecret(name: string, sign: string, value: string): boolean {
  // References and masks say nothing; a path or a URL after a name is what the name is about.
  if (/^(?:\$|secret:\/\/|\[redacted|https?:\/\/|\.{0,2}\/)/i.test(value) || !looksLikeCredential(name)) return false;
  // After a colon a sentence may go on.
  return sign.startsWith(":") ? isRandom(value) : true;
}
