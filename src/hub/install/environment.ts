/**
 * Which variables of the user's environment a server of a skill may have. The author of a skill chooses the names of its
 * parameters, so a name alone must not be enough to be given whatever the user has under it.
 */
import type { RequiredServer, ServerParameter } from "../../model/skill.ts";
import { looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { maskTokens } from "../../secrets/token-shapes.ts";
import { isNeededByTable } from "../../skills/servers/well-known.ts";

/** The shell's own; a parameter of such a name does not mean them. */
const SHELL_VARIABLES = new Set(["PATH", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "_"]);

/** First words of variables that many people have set for other programs. */
const OF_OTHERS = new Set(
  (
    "anthropic arm aws azure bitbucket ci circle claude cloudflare cloudsdk cohere consul datadog digitalocean docker " +
    "firebase fly gcloud gcp gemini gh github gitlab google gpg groq heroku hf hugging huggingface kube kubeconfig " +
    "mistral netlify node npm openai openrouter pgpassword pypi sentry sendgrid slack snyk sonar ssh stripe sudo " +
    "supabase telegram terraform tf toolcrib twilio twine vault vercel"
  ).split(" "),
);

interface Wanted {
  readonly parameter: ServerParameter;
  readonly server: RequiredServer;
  /** Name of the skill. */
  readonly skill: string;
}

/** Undefined if there is none, an empty one, or one of the shell's own. */
export function environmentValue(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return SHELL_VARIABLES.has(name) || env[name] === "" ? undefined : env[name];
}

/**
 * Whether the variable of a parameter's name may be taken without anybody naming it. Only a required parameter's is. A
 * secret of a widespread service goes to a server of that service only: by the table of well-known servers, or because the
 * service is named in the name of the server, its package or the skill.
 */
export function mayTakeUnasked({ parameter, server, skill }: Wanted, value: string): boolean {
  const { name, required, sensitive } = parameter;
  if (!required) return false;
  if (isNeededByTable(server, name) || !(sensitive || isCredential(name, value))) return true;
  const [first = ""] = wordsOf(name);
  return !OF_OTHERS.has(first) || [server.name, server.package ?? "", skill].flatMap(wordsOf).includes(first);
}

/** By its name, or by the shape of its value: a token with a maker's prefix, an address with a password. */
export function isCredential(name: string, value: string): boolean {
  return looksLikeCredential(name) || maskTokens(value) !== value;
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().match(/[a-z0-9]+/g) ?? [];
}
