/** Which addresses of foreign text may become links, and where they lead. */
export interface SafeLink {
  readonly href: string;
  readonly host: string;
}

export function safeLink(text: string): SafeLink | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  // `https://bank.example@evil.example` reads like another place.
  if (url.username !== "" || url.password !== "") return undefined;
  return { href: url.href, host: url.host };
}
