/**
 * The environment of a server's program: a minimum to run at all, what it needs to reach the network as the hub does, and
 * what its spec names. The hub's own environment holds other servers' secrets, and variables such as NODE_OPTIONS or
 * LD_PRELOAD would run foreign code in the child.
 */
import { type ServerSpec, SESSION_ORIGIN } from "../../model/server-spec.ts";
import { secretParts } from "../../secrets/redactor.ts";

const POSIX_NAMES = new Set(["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"]);

/** Without these, Windows programs fail to find the system, their profile or a place for temporary files. */
const WINDOWS_NAMES = new Set([
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PATH",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "PROGRAMW6432",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERDOMAIN",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
]);

/** `named` wins over `base`, on Windows without regard to case, as the system itself does. */
export function childEnvironment(
  base: NodeJS.ProcessEnv,
  named: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const windows = platform === "win32";
  const environment: Record<string, string> = {};
  const taken = new Set(Object.keys(named).map((name) => (windows ? name.toUpperCase() : name)));
  for (const [name, value] of Object.entries(base)) {
    const key = windows ? name.toUpperCase() : name;
    const wanted = windows ? WINDOWS_NAMES.has(key) : POSIX_NAMES.has(key) || key.startsWith("LC_");
    // Exported shell functions ("() { …") are code, whatever the name.
    if (value !== undefined && wanted && !taken.has(key) && !value.startsWith("()")) environment[name] = value;
  }
  return { ...environment, ...named };
}

const NETWORK_NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];

/** Files and folders of certificate authorities: a sandbox lets them in. */
export const CERTIFICATE_NAMES = [
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE",
  "PIP_CERT",
  "npm_config_cafile",
];

/** Settings files of the user, which may hold tokens. A sandbox does not see them. */
const NPM_FILES = ["npm_config_userconfig", "npm_config_globalconfig"];

/** Inherited where neither the server nor the config says otherwise. */
export const DEFAULT_INHERITED: readonly string[] = [
  ...NETWORK_NAMES,
  ...NETWORK_NAMES.map((name) => name.toLowerCase()),
  "NODE_USE_ENV_PROXY",
  "NODE_USE_SYSTEM_CA",
  ...CERTIFICATE_NAMES,
  "npm_config_registry",
  "npm_config_proxy",
  "npm_config_https_proxy",
  "npm_config_noproxy",
  ...NPM_FILES,
  "BUN_CONFIG_REGISTRY",
  "PIP_INDEX_URL",
  "PIP_EXTRA_INDEX_URL",
  "UV_DEFAULT_INDEX",
  "UV_INDEX",
  "UV_INDEX_URL",
  "UV_EXTRA_INDEX_URL",
  "UV_NATIVE_TLS",
  "UV_SYSTEM_CERTS",
];

type InheritingSpec = Pick<ServerSpec, "inherit" | "hubInherit" | "origin" | "skill">;

export interface InheritOptions {
  /** The hub's own environment. */
  readonly base: NodeJS.ProcessEnv;
  /** The variables of the spec's `env`: they take precedence, however a name is spelled. */
  readonly named: Readonly<Record<string, string>>;
  /** The network of its sandbox, if it runs in one. */
  readonly sandboxNetwork?: "none" | "host";
  readonly platform?: NodeJS.Platform;
}

/**
 * The variables that a program inherits beyond the minimum, as `inherit` or the default says. Without a network the defaults
 * are of no use. Credentials in them are not for a server that the user did not describe.
 */
export function inheritedVariables(spec: InheritingSpec, options: InheritOptions): Record<string, string> {
  const { base, named, sandboxNetwork, platform = process.platform } = options;
  const listed = spec.inherit ?? spec.hubInherit;
  const names = listed ?? defaultNames(sandboxNetwork);
  const isWanted = nameMatcher(names, platform);
  const taken = new Set(Object.keys(named).map((name) => name.toLowerCase()));
  const isOthers =
    spec.origin.file === SESSION_ORIGIN.file || spec.origin.dialect === "skill" || spec.skill !== undefined;
  const entries = Object.entries(base).filter(([name, value = ""]) => {
    if (value === "" || value.startsWith("()") || !isWanted(name) || taken.has(name.toLowerCase())) return false;
    return listed !== undefined || !isOthers || credentialsInVariable(value).length === 0;
  });
  // The filter left only texts.
  return Object.fromEntries(entries) as Record<string, string>;
}

function defaultNames(network: "none" | "host" | undefined): readonly string[] {
  if (network === "none") return [];
  return network === undefined ? DEFAULT_INHERITED : DEFAULT_INHERITED.filter((name) => !NPM_FILES.includes(name));
}

/** npm takes its settings in any case; its registry may be set for single scopes, too. */
function nameMatcher(names: readonly string[], platform: NodeJS.Platform): (name: string) => boolean {
  const isNpm = (name: string): boolean => /^npm_config_/i.test(name);
  const keyOf = (name: string): string => (platform === "win32" || isNpm(name) ? name.toLowerCase() : name);
  const wanted = new Set(names.map(keyOf));
  const scoped = wanted.has("npm_config_registry");
  return (name) => wanted.has(keyOf(name)) || (scoped && /^npm_config_@[^:/]+:registry$/i.test(name));
}

/** `user:password@` in the address of a proxy or a registry, which some write without its scheme. */
export function credentialsInVariable(value: string): string[] {
  return value.split(/[\s,]+/).flatMap((word) => {
    const address = word.includes("://") ? word : `http://${word}`;
    const [whole, ...parts] = secretParts(address);
    // A name without a password is likely a token.
    const [, token] = /^[a-z][a-z0-9+.-]*:\/\/([^:/?#@]+)@/i.exec(whole?.value ?? "") ?? [];
    return [...parts.map((part) => part.value), ...(token === undefined ? [] : [token])];
  });
}
