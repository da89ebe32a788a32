/**
 * The environment of a stdio server: a minimum to run at all, plus what its spec names. The hub's own environment
 * holds other servers' secrets, and variables such as NODE_OPTIONS or LD_PRELOAD would run foreign code in the child.
 */
const POSIX = new Set(["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"]);

/** Without these, Windows programs fail to find the system, their profile or a place for temporary files. */
const WINDOWS = new Set([
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
    const wanted = windows ? WINDOWS.has(key) : POSIX.has(key) || key.startsWith("LC_");
    // Exported shell functions ("() { …") are code, whatever the name.
    if (value !== undefined && wanted && !taken.has(key) && !value.startsWith("()")) environment[name] = value;
  }
  return { ...environment, ...named };
}
