/**
 * Which variables of the user's environment a server of a skill may have. The author of a skill chooses the names of its
 * parameters, so a name alone must not be enough: a server gets only variables whose name and value are known to be harmless,
 * unless the user names others. A list of secrets would never be complete.
 */
import { isCredentialName } from "../../secrets/credential-names.ts";
import { maskTokens } from "../../secrets/mask.ts";

/** The shell's own; a parameter of such a name does not mean them. */
const SHELL_VARIABLES = new Set(["PATH", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "_"]);

/** Undefined if there is none, an empty one, or one of the shell's own. */
export function environmentValue(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return SHELL_VARIABLES.has(name) || env[name] === "" ? undefined : env[name];
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

/** First words of variables that people have set for other programs, and that say something of an account or a socket. */
const OTHER_PROGRAMS = words(
  "anthropic arm aws azure bitbucket ci circle claude cloudflare cloudsdk cohere consul datadog dbus digitalocean " +
    "docker firebase fly gcloud gcp gemini gh git github gitlab gnome gnupg google gpg groq heroku hf hugging huggingface " +
    "kube kubeconfig kubernetes mistral mysql netlify node npm openai openrouter pg pgpassword podman postgres pypi " +
    "redis sentry sendgrid slack snyk sonar ssh stripe sudo supabase telegram terraform tf toolcrib twilio twine vault " +
    "vercel wayland xauthority xdg",
);

/** Names that lead to a credential, or are one. */
const SECRET_NAME =
  /agent|auth|cert|cookie|cred|hook|jwt|key|kube|login|passw|private|secret|session|sign|sock|ssh|token|wallet/i;
/** The same of a file or folder; people's own are called after agents and sessions, too. */
const SECRET_FILE =
  /cred|kubeconfig|netrc|npmrc|passw|pgpass|private|secret|sock(?:et)?$|token|wallet|^id_|\.(?:jks|kdbx|key|p12|pem|pfx)$/i;

/** The kind of value that the last word of a harmless name promises. */
const KINDS: readonly { readonly names: ReadonlySet<string>; readonly fits: (value: string) => boolean }[] = [
  { names: words("cwd dir directory file folder path repo repository root workspace"), fits: isHarmlessPath },
  { names: words("endpoint host hostname uri url"), fits: isHarmlessAddress },
  {
    names: words(
      "count days depth height hours interval limit max min minutes port retries seconds size timeout ttl width",
    ),
    fits: (value) => /^\d{1,9}(?:\.\d{1,3})?(?:ms|s|m|h|d|k|kb|mb|gb)?$/i.test(value),
  },
  {
    names: words("color colour debug enable enabled quiet readonly verbose"),
    fits: (value) => /^(?:true|false|yes|no|on|off|0|1)$/i.test(value),
  },
  {
    names: words(
      "branch city country currency environment format lang language level locale mode model name project region stage " +
        "theme timezone tz units version zone",
    ),
    fits: (value) => /^[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,39}$/.test(value) && !value.includes("://") && !isRandom(value),
  },
];

const MAX_LENGTH = 512;

/**
 * Whether a server may have the variable although the user did not name it. Name and value both have to be harmless:
 * `DATABASE_URL` may contain a password, and `STRIPE_SK` may be anything.
 */
export function isHarmless(name: string, value: string): boolean {
  const parts = wordsOf(name);
  const kind = KINDS.find(({ names }) => names.has(parts.at(-1) ?? ""));
  if (kind === undefined || OTHER_PROGRAMS.has(parts[0] ?? "") || SECRET_NAME.test(name)) return false;
  return value.length <= MAX_LENGTH && !isCredential(name, value) && kind.fits(value);
}

/** By its name, or by the shape of its value: a token with a maker's prefix, an address that is itself the secret. */
export function isCredential(name: string, value: string): boolean {
  return isCredentialName(name) || maskTokens(value) !== value || isSecretAddress(value);
}

/** An address that grants access by itself: of a webhook, with a long random part, or with a token among its parameters. */
function isSecretAddress(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^(?:https?|wss?):$/.test(url.protocol)) return false;
  const parts = [...url.hostname.split("."), ...url.pathname.split("/")];
  const given = [...url.searchParams].some(([key, each]) => isCredentialName(key) || isRandom(each));
  return parts.some((part) => /hook/i.test(part) || isRandom(part)) || given;
}

/** A path of the user's own work: no hidden folders, where programs keep credentials, and no system folders. */
function isHarmlessPath(value: string): boolean {
  if (!/^(?:~|\.{1,2})?(?:[/\\]|$)|^[A-Za-z]:[/\\]/.test(value) || /[\n\r\0]/.test(value)) return false;
  if (/^\/(?:run|var\/run|proc|sys|dev|etc)(?:\/|$)/.test(value)) return false;
  return value
    .split(/[/\\]/)
    .every((part) => /^\.{0,2}$|^[^.]/.test(part) && !SECRET_FILE.test(part) && !(part.length >= 32 && isRandom(part)));
}

/** A host, or an address without any other information. */
function isHarmlessAddress(value: string): boolean {
  if (/^(?:[A-Za-z0-9-]{1,63}\.){0,8}[A-Za-z0-9-]{1,63}(?::\d{1,5})?$/.test(value)) {
    return value.split(".").every((part) => !isRandom(part));
  }
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^(?:https?|wss?):$/.test(url.protocol)) return false;
  if (url.username + url.password + url.search + url.hash !== "" || isSecretAddress(value)) return false;
  return url.pathname.split("/").every((part) => /^(?:api|v\d{1,2}|mcp|sse|rest|graphql|)$/i.test(part));
}

/** Letters and digits mixed as in no word: `B0A1x9Qz…`, a UUID, a long number. */
function isRandom(text: string): boolean {
  return /\d{9}/.test(text) || (text.length >= 16 && /\d/.test(text) && /[A-Za-z]/.test(text)) || text.length >= 40;
}

/** `githubApiUrl` and `GITHUB_API_URL` alike. */
function wordsOf(name: string): string[] {
  return (name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").match(/[A-Za-z0-9]+/g) ?? []).map((word) => word.toLowerCase());
}
