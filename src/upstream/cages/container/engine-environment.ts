/**
 * What podman, docker and npm get of the hub's environment: what they need to find their settings, their daemon and the
 * way to a registry. Never the rest, which holds other servers' secrets.
 */
const EVERY_PROGRAM = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "TMPDIR",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "APPDATA",
  "COMSPEC",
  "LOCALAPPDATA",
  "PATHEXT",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "WINDIR",
]);
const ENGINE = new Set(["DBUS_SESSION_BUS_ADDRESS", "REGISTRY_AUTH_FILE", "SSH_AUTH_SOCK"]);
const ENGINE_PREFIXES = /^(?:XDG|DOCKER|CONTAINERS?|BUILDAH|STORAGE|_CONTAINERS)_/;

/** What the system's loader and the languages that engines are written in listen to, and what engines may come to. */
const LISTENED_TO =
  /^(?:LD_|DYLD_|GLIBC_|MALLOC_|GO|SSL_|LC_|OTEL_|PODMAN|DOCKER|BUILDKIT_|BUILDX_|CONTAINER|_CONTAINERS|XDG_|\w+_PROXY$|LANGUAGE$|TERM$|TZ$|NOTIFY_SOCKET$|LISTEN_)/i;

/** Shells of all kinds: options, prompts and files that they read at their start, and lists of folders. */
const OF_A_SHELL = /^(?:ENV|IFS|PS\d|OPT(?:IND|ARG|ERR)|SHELLOPTS|BASH\w*|ZDOTDIR|POSIXLY_CORRECT|\w*PATH)$/i;

/** npm's own settings, and the usual names of tokens that they refer to. */
const NPM = /^(?:npm_config_.*|npm_token|node_auth_token|node_extra_ca_certs)$/i;

/** Engines start `iptables` and the like, which are in folders that Debian keeps out of the PATH of ordinary users. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/sbin"];

export function engineEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = only(env, isForEngine);
  if (process.platform === "win32" || kept["PATH"] === undefined) return kept;
  const folders = kept["PATH"].split(":");
  return { ...kept, PATH: [...folders, ...SYSTEM_FOLDERS.filter((each) => !folders.includes(each))].join(":") };
}

/**
 * Dependencies from git are refused: npm would run the program that such a dependency calls `git` in an .npmrc of its
 * own. Older versions know no `allow-git`.
 */
export function npmEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const own = { npm_config_git: "/bin/false", npm_config_allow_git: "none", npm_config_ignore_scripts: "true" };
  // npm takes any case, and dashes.
  const isOwn = (name: string): boolean => Object.hasOwn(own, name.toLowerCase().replaceAll("-", "_"));
  const kept = only(env, (name) => EVERY_PROGRAM.has(name.toUpperCase()) || (NPM.test(name) && !isOwn(name)));
  return { ...kept, ...own };
}

/** Whether a variable of this name changes what the engine itself does. */
export function changesEngine(name: string): boolean {
  return isForEngine(name) || LISTENED_TO.test(name);
}

/** Whether it changes what a shell does that starts the engine. */
export function changesShell(name: string): boolean {
  return OF_A_SHELL.test(name);
}

function isForEngine(name: string): boolean {
  return EVERY_PROGRAM.has(name.toUpperCase()) || ENGINE.has(name.toUpperCase()) || ENGINE_PREFIXES.test(name);
}

function only(env: NodeJS.ProcessEnv, isWanted: (name: string) => boolean): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined && isWanted(name)) kept[name] = value;
  return kept;
}
