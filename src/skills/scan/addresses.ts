/** The addresses in a line, and what kind of place each of them is. */
import { groupOf, type HostGroup } from "./known-hosts.ts";

export type AddressKind =
  | HostGroup
  /** This machine. */
  | "local"
  /** A number of a private network. */
  | "private"
  /** A number that is set aside for examples. */
  | "example number"
  /** A number that anybody can have. */
  | "number"
  /** A name set aside for examples, or a gap to fill in. */
  | "example"
  | "unknown";

export interface Address {
  readonly url: string;
  readonly host: string;
  readonly kind: AddressKind;
  /** Neither encrypted nor authenticated: whoever is on the way can change what comes. */
  readonly plainHttp: boolean;
  /** The number is written in a way that hides it, like `http://0x5b5cf21e/`. */
  readonly disguised: boolean;
  readonly path: string;
}

const URLS = /\b(?:https?|ftp):\/\/(?:\[[0-9a-f:.]{2,45}\])?[^\s"'`<>|\\^{}[\]]{1,400}/g;
/** Numbers without a scheme count where a port or a path follows. */
const BARE_NUMBER = /(?<![\w./:@-])(?:\d{1,3}\.){3}\d{1,3}(?=[:/]\S)[^\s"'`<>|\\)]{1,200}/g;
/** A host ends at a comma; before an `@` it is part of a user's name. */
const HOST_WITH_COMMA = /^(\w{3,5}:\/\/[^/?#@,]{1,300}),[^/?#@]{0,400}(?:[/?#].{0,400})?$/;
const MOST = 64;

export function addressesIn(text: string): Address[] {
  const found: Address[] = [];
  if (text.includes("://")) {
    for (const { 0: url, index } of text.matchAll(URLS)) {
      // `http://1.2.3[.]4` is how guides write an address that nobody shall open.
      if (text.startsWith("[", index + url.length)) continue;
      const address = addressOf(url.replace(HOST_WITH_COMMA, "$1").replace(/(?<![).,;:!?*_])[).,;:!?*_]+$/, ""));
      if (address !== undefined) found.push(address);
      if (found.length >= MOST) return found;
    }
  }
  for (const [place] of text.matchAll(BARE_NUMBER)) {
    const address = addressOf(`http://${place}`);
    if (address !== undefined) found.push(address);
    if (found.length >= MOST) break;
  }
  return found;
}

const BARE_NAME =
  /(?:^|\s)["']?((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}(?::\d{2,5})?(?:\/[^\s"'`|)]{0,200})?)(?=$|[\s"'`|)])/g;
const FILE_ENDING = /\.(?:sh|py|js|ts|json|ya?ml|md|txt|zip|gz|tgz|exe|ps1|env|pem|html?|png|jpg|pdf|csv)$/;

/** Where a download command fetches from: curl takes a name without a scheme, too. */
export function fetchedFrom(command: string): Address[] {
  const found = addressesIn(command);
  if (found.length > 0) return found;
  for (const [, name = ""] of command.matchAll(BARE_NAME)) {
    if (!name.includes("/") && FILE_ENDING.test(name)) continue;
    const address = addressOf(`https://${name}`);
    if (address !== undefined) return [address];
  }
  return [];
}

/** In a host: something to fill in. */
const GAP =
  /[<>{}$*\u2026]|\.\.|(?:^|[.-])(?:your|my)[-_.]?(?:\w{0,12}[-_.]|domain|host|server|site|company|app|org)|placeholder/;
const EXAMPLE_NAME =
  /(?:^|\.)(?:example|test|invalid|localhost|local|internal|lan|home\.arpa)$|(?:^|\.)example\.(?:com|org|net|io)$/;

export function addressOf(url: string): Address | undefined {
  if (!URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  const host = parsed.hostname.replace(/^\[|\]$/g, "");
  if (host === "") return undefined;
  const written = /^\w+:\/\/(?:[^/@]{0,200}@)?\[?([^/:\]?#]{0,300})/.exec(url)?.[1] ?? "";
  const kind = kindOf(host);
  return {
    url,
    host,
    kind,
    plainHttp: parsed.protocol !== "https:",
    disguised: isNumber(kind) && !host.includes(":") && written.toLowerCase() !== host,
    path: parsed.pathname,
  };
}

function isNumber(kind: AddressKind): boolean {
  return kind === "number" || kind === "example number" || kind === "private" || kind === "local";
}

function kindOf(host: string): AddressKind {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(host);
  if (parts !== null) return kindOfNumber(parts.slice(1).map(Number));
  if (host.includes(":")) return kindOfLongNumber(host);
  if (host === "localhost" || host.endsWith(".localhost") || host === "host.docker.internal") return "local";
  const group = groupOf(host);
  if (group !== undefined) return group;
  if (!host.includes(".") || EXAMPLE_NAME.test(host) || GAP.test(host)) return "example";
  return "unknown";
}

function kindOfNumber([a = 0, b = 0, c = 0, d = 0]: readonly number[]): AddressKind {
  if (a === 127 || (a === 0 && b === 0 && c === 0 && d === 0)) return "local";
  if (a === 10 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168) || (a === 169 && b === 254))
    return "private";
  // Set aside for networks of providers and of virtual private networks.
  if (a === 100 && b >= 64 && b < 128) return "private";
  if ((a === 192 && b === 0 && c === 2) || (a === 198 && b === 51 && c === 100) || (a === 203 && b === 0 && c === 113))
    return "example number";
  // Versions and public resolvers are written this way, too.
  if ((a === 1 && b === 2 && c === 3 && d === 4) || (a === b && b === c && c === d)) return "example number";
  return a === 0 || a >= 224 ? "example number" : "number";
}

function kindOfLongNumber(host: string): AddressKind {
  if (host === "::1" || host === "::") return "local";
  if (/^f[cd]|^fe[89ab]/.test(host)) return "private";
  return host.startsWith("2001:db8") ? "example number" : "number";
}

/** Names that say themselves what they are for; guides use them for what they warn of. */
const SELF_TOLD =
  /(?:^|[.-])(?:evil|malicious|attacker|attackers|malware|payloads?|c2|exfil\w{0,10}|pwn\w{0,6}|steal\w{0,4}|backdoor\w{0,3}|hackers?|rogue|phish\w{0,4}|trojan|dropper)(?:[.-]|$)/;
/** Endings that are given away, or nearly so, and have hardly any other use for programs. */
const CHEAP =
  /\.(?:cfd|click|top|gq|tk|ml|cf|ga|zip|mov|quest|sbs|icu|cyou|rest|buzz|monster|bond|cam|hair|lol|mom|pics)$/;

/** Nobody honest serves a program from there. */
export function isShady({ kind, disguised, host }: Address): boolean {
  if (kind === "number" || kind === "example number" || kind === "shortener" || kind === "drop" || disguised)
    return true;
  return (kind === "unknown" || kind === "example") && (SELF_TOLD.test(host) || CHEAP.test(host));
}

/** It can be reached from outside of this machine and its network. */
export function isOutside({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private";
}
