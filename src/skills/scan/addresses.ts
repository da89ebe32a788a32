/** The addresses in a line, and what kind of place each of them is. */

export type AddressKind =
  | HostGroup
  /** This machine. */
  | "local"
  /** A number of a private network. */
  | "private"
  /** A number that is set aside for examples. */
  | "example number"
  /** A public IP address. */
  | "number"
  /** A name set aside for examples, or a gap to fill in. */
  | "example"
  | "unknown";

export interface Address {
  readonly url: string;
  readonly host: string;
  readonly kind: AddressKind;
  /** Neither encrypted nor authenticated: anyone on the network path can change the response. */
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
const MAX_ADDRESSES = 64;

export function addressesIn(text: string): Address[] {
  const found: Address[] = [];
  if (text.includes("://")) {
    for (const { 0: url, index } of text.matchAll(URLS)) {
      // Guides write `http://1.2.3[.]4` for an address that must not be opened.
      if (text.startsWith("[", index + url.length)) continue;
      const address = addressOf(url.replace(HOST_WITH_COMMA, "$1").replace(/(?<![).,;:!?*_])[).,;:!?*_]+$/, ""));
      if (address !== undefined) found.push(address);
      if (found.length >= MAX_ADDRESSES) return found;
    }
  }
  for (const [place] of text.matchAll(BARE_NUMBER)) {
    const address = addressOf(`http://${place}`);
    if (address !== undefined) found.push(address);
    if (found.length >= MAX_ADDRESSES) break;
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
const HOST_PLACEHOLDER =
  /[<>{}$*\u2026]|\.\.|(?:^|[.-])(?:your|my)[-_.]?(?:\w{0,12}[-_.]|domain|host|server|site|company|app|org)|placeholder/;
const EXAMPLE_NAME =
  /(?:^|\.)(?:example|test|invalid|localhost|local|internal|lan|home\.arpa)$|(?:^|\.)example\.(?:com|org|net|io)$/;

const NUMBERS: ReadonlySet<AddressKind> = new Set(["number", "example number", "private", "local"]);

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
    disguised: NUMBERS.has(kind) && !host.includes(":") && written.toLowerCase() !== host,
    path: parsed.pathname,
  };
}

function kindOf(host: string): AddressKind {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(host);
  if (parts !== null) return kindOfNumber(parts.slice(1).map(Number));
  if (host.includes(":")) return kindOfLongNumber(host);
  if (host === "localhost" || host.endsWith(".localhost") || host === "host.docker.internal") return "local";
  const group = groupOf(host);
  if (group !== undefined) return group;
  if (!host.includes(".") || EXAMPLE_NAME.test(host) || HOST_PLACEHOLDER.test(host)) return "example";
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
const SELF_DESCRIBED =
  /(?:^|[.-])(?:evil|malicious|attacker|attackers|malware|payloads?|c2|exfil\w{0,10}|pwn\w{0,6}|steal\w{0,4}|backdoor\w{0,3}|hackers?|rogue|phish\w{0,4}|trojan|dropper)(?:[.-]|$)/;
/** Endings that are given away, or nearly so, and have hardly any other use for programs. */
const CHEAP =
  /\.(?:cfd|click|top|gq|tk|ml|cf|ga|zip|mov|quest|sbs|icu|cyou|rest|buzz|monster|bond|cam|hair|lol|mom|pics)$/;

/** Whether no trustworthy program comes from there. */
export function isSuspicious({ kind, disguised, host }: Address): boolean {
  if (kind === "number" || kind === "example number" || kind === "shortener" || kind === "drop" || disguised)
    return true;
  return (kind === "unknown" || kind === "example") && (SELF_DESCRIBED.test(host) || CHEAP.test(host));
}

/** It can be reached from outside of this machine and its network. */
export function isOutside({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private";
}

// Known hosts.

/** Installers that thousands of honest guides name. A name covers the hosts below it. */
const INSTALLERS = (
  "get.docker.com sh.rustup.rs rustup.rs static.rust-lang.org astral.sh bun.sh bun.com deno.land deno.com get.pnpm.io pnpm.io " +
  "install.python-poetry.org pyenv.run bootstrap.pypa.io fnm.vercel.app get.volta.sh volta.sh mise.run mise.jdx.dev starship.rs " +
  "get.helm.sh get.k3s.io get.k0s.sh fly.io cli.github.com sdk.cloud.google.com dl.google.com aka.ms claude.ai cursor.com " +
  "opencode.ai openclaw.ai clawd.bot molt.bot docs.openclaw.ai foundry.paradigm.xyz release.anza.xyz release.solana.com " +
  "community.chocolatey.org chocolatey.org get.scoop.sh deb.nodesource.com rpm.nodesource.com get.sdkman.io nixos.org " +
  "install.determinate.systems tailscale.com get.rvm.io cli.doppler.com packages.microsoft.com pkgx.sh railway.app railway.com " +
  "ollama.com ollama.ai brew.sh nodejs.org python.org go.dev golang.org apt.llvm.org download.docker.com sentry.io " +
  "get.sentry.io cli.moonbitlang.com install.duckdb.org ziglang.org dotnet.microsoft.com dot.net visualstudio.com " +
  "code.visualstudio.com cli.run.app get.pulumi.com releases.hashicorp.com apt.releases.hashicorp.com awscli.amazonaws.com " +
  "storage.googleapis.com hf.co huggingface.co lmstudio.ai zed.dev warp.dev git-scm.com ffmpeg.org imagemagick.org " +
  "developer.apple.com apps.apple.com microsoft.com apple.com google.com mozilla.org jetbrains.com 1password.com " +
  "npmjs.com pypi.org crates.io rubygems.org packagist.org anaconda.com repo.anaconda.com conda.io mamba.pm micro.mamba.pm " +
  "postgresql.org mysql.com redis.io mongodb.com sqlite.org nginx.org kubernetes.io dl.k8s.io docker.com cloudflare.com " +
  "vercel.com netlify.com supabase.com stripe.com twilio.com anthropic.com openai.com"
).split(" ");

/** Hosts of projects; the risk depends on the project. */
const FORGES =
  "github.com raw.githubusercontent.com githubusercontent.com gitlab.com bitbucket.org codeberg.org sourceforge.net".split(
    " ",
  );

/** Hosts where anyone can publish a page anonymously. */
const FREE_PAGES = (
  "vercel.app netlify.app pages.dev github.io gitlab.io web.app firebaseapp.com herokuapp.com repl.co replit.app surge.sh " +
  "onrender.com workers.dev glitch.me webflow.io wixsite.com weebly.com blogspot.com neocities.org 000webhostapp.com r2.dev " +
  "s3.amazonaws.com fly.dev up.railway.app deno.dev val.run lovable.app bolt.host"
).split(" ");

const PASTES = (
  "pastebin.com rentry.co rentry.org glot.io hastebin.com toptal.com/developers/hastebin paste.ee ghostbin.com termbin.com dpaste.com " +
  "dpaste.org ix.io sprunge.us paste.rs 0x0.st controlc.com privatebin.net justpaste.it telegra.ph gist.githubusercontent.com " +
  "gist.github.com transfer.sh file.io anonfiles.com gofile.io bashupload.com catbox.moe files.catbox.moe litter.catbox.moe " +
  "mediafire.com mega.nz wetransfer.com cdn.discordapp.com pixeldrain.com send.cm temp.sh oshi.at tmpfiles.org uguu.se"
).split(" ");

const SHORTENERS = (
  "bit.ly tinyurl.com t.co goo.gl is.gd v.gd ow.ly buff.ly rebrand.ly cutt.ly shorturl.at rb.gy t.ly tiny.cc s.id bl.ink lnkd.in " +
  "qr.ae adf.ly surl.li clck.ru shrtco.de urlz.fr dub.sh git.io u.to soo.gd"
).split(" ");

/** Services that collect requests, and tunnels to private machines. */
const DROPS = (
  "webhook.site requestbin.com requestbin.net pipedream.net m.pipedream.net beeceptor.com requestcatcher.com hookbin.com " +
  "interact.sh oast.fun oast.pro oast.live oast.site oast.online oast.me oastify.com burpcollaborator.net ngrok.io ngrok.app " +
  "ngrok-free.app ngrok-free.dev trycloudflare.com serveo.net localhost.run loca.lt localtunnel.me bore.pub pinggy.link dnslog.cn " +
  "ceye.io canarytokens.com ptsv2.com ptsv3.com postb.in smee.io typedwebhook.tools webhookinbox.com"
).split(" ");

const TABLE = new Map<string, HostGroup>();
for (const [group, hosts] of [
  ["installer", INSTALLERS],
  ["forge", FORGES],
  ["free page", FREE_PAGES],
  ["paste", PASTES],
  ["shortener", SHORTENERS],
  ["drop", DROPS],
] as const) {
  for (const host of hosts) TABLE.set(host, group);
}

const OFFICIAL =
  "openclaw.ai clawhub.ai clawhub.com clawdhub.com clawd.bot clawdbot.com molt.bot moltbot.com claude.ai claude.com anthropic.com".split(
    " ",
  );
const BRAND = /openclaw|clawhub|clawdhub|clawdbot|moltbot|claude-?(?:code|desktop|cli)|anthropic/;

/** The name is made to look like that of an agent's maker. */
export function isImpersonating(host: string): boolean {
  return BRAND.test(host) && !OFFICIAL.some((name) => host === name || host.endsWith(`.${name}`));
}

type HostGroup = "installer" | "forge" | "free page" | "paste" | "shortener" | "drop";

/** The group of a host, by itself or by the longest domain above it. */
function groupOf(host: string): HostGroup | undefined {
  let name = host;
  for (let steps = 0; steps < 6; steps += 1) {
    const group = TABLE.get(name);
    if (group !== undefined) return group;
    const dot = name.indexOf(".");
    if (dot === -1) return undefined;
    name = name.slice(dot + 1);
  }
  return undefined;
}
