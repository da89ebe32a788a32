/** Hosts that say something about what comes from them. */

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

/** Places where anybody keeps projects; the project decides. */
const FORGES =
  "github.com raw.githubusercontent.com githubusercontent.com gitlab.com bitbucket.org codeberg.org sourceforge.net".split(
    " ",
  );

/** Places where anybody puts a page in a minute, without a name. */
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

/** Made to take in what is sent to them, or tunnels to somebody's own machine. */
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

export type HostGroup = "installer" | "forge" | "free page" | "paste" | "shortener" | "drop";

/** The group of a host, by itself or by the longest domain above it. */
export function groupOf(host: string): HostGroup | undefined {
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
