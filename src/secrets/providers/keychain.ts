/** The keychain of the machine, through its own program: `security` on macOS, `secret-tool` (libsecret) on Linux. */
import {
  type CommandResult,
  runCommand,
  SecretFailure,
  type SecretProvider,
  withoutFinalNewline,
} from "../provider.ts";

interface Access {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** The exit code of `security` if there is no such entry; `secret-tool` exits with 1 and prints nothing. */
const NOT_FOUND_ON_MACOS = 44;

export function keychainProvider(platform: NodeJS.Platform = process.platform): SecretProvider {
  return {
    name: "keychain",
    cached: true,
    async resolve({ path }, { env, signal }) {
      const slash = path.lastIndexOf("/");
      const [service, account] = [path.slice(0, slash), path.slice(slash + 1)];
      const result = await lookUp(platform, service, account, { env, signal });
      const { exitCode, complaint } = result;
      if (exitCode === NOT_FOUND_ON_MACOS || (exitCode === 1 && complaint === "")) {
        throw new SecretFailure("is not in the keychain", { hint: storeHint(service, account) });
      }
      if (exitCode !== 0) throw new SecretFailure(`was not given by the keychain: ${result.reason}`);
      const value = withoutFinalNewline(result.stdout);
      if (value === "") throw new SecretFailure("is empty");
      return value;
    },
  };
}

function storeHint(service: string, account: string): string {
  if (service === "toolcrib") return `toolcrib secrets set ${account} stores it.`;
  return `Check service ${JSON.stringify(service)} and account ${JSON.stringify(account)}.`;
}

async function lookUp(
  platform: NodeJS.Platform,
  service: string,
  account: string,
  access: Access,
): Promise<CommandResult> {
  const program = programOf(platform);
  const args =
    program === "security"
      ? ["find-generic-password", "-s", service, "-a", account, "-w"]
      : ["lookup", "service", service, "account", account];
  const result = await runCommand(program, args, access);
  if (result === undefined) throw missing(program);
  return result;
}

/**
 * Stores a value for `secret://keychain/<service>/<account>`, replacing the one that is there.
 * The value goes through stdin: arguments are visible to every user of the machine.
 */
export async function storeInKeychain(
  entry: { readonly service: string; readonly account: string; readonly value: string },
  access: Access,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  const { service, account, value } = entry;
  const program = programOf(platform);
  if (program === "security" && !/^[\x20-\x7e]+$/.test(value)) {
    // Reading such a value back returns hexadecimal digits instead.
    throw new SecretFailure("the macOS keychain's own program takes printable ASCII only");
  }
  const result =
    program === "security"
      ? await runCommand(program, ["-i"], { ...access, input: addCommand(service, account, value) })
      : await runCommand(program, ["store", `--label=${service} ${account}`, "service", service, "account", account], {
          ...access,
          input: value,
        });
  if (result === undefined) throw missing(program);
  if (result.exitCode !== 0) throw new SecretFailure(`${program} failed: ${result.reason}`);
}

/** Removes an entry; a missing one is not a failure. */
export async function removeFromKeychain(
  { service, account }: { readonly service: string; readonly account: string },
  access: Access,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  const program = programOf(platform);
  const args =
    program === "security"
      ? ["delete-generic-password", "-s", service, "-a", account]
      : ["clear", "service", service, "account", account];
  const result = await runCommand(program, args, access);
  if (result === undefined) throw missing(program);
  if (result.exitCode === 0 || result.exitCode === NOT_FOUND_ON_MACOS) return;
  if (result.exitCode === 1 && result.complaint === "") return;
  throw new SecretFailure(`${program} failed: ${result.reason}`);
}

function addCommand(service: string, account: string, value: string): string {
  const quote = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;
  const hex = Buffer.from(value, "utf8").toString("hex");
  return `add-generic-password -U -s ${quote(service)} -a ${quote(account)} -X ${hex}\n`;
}

function programOf(platform: NodeJS.Platform): "security" | "secret-tool" {
  if (platform === "darwin") return "security";
  if (platform !== "win32") return "secret-tool";
  throw new SecretFailure("is in a keychain, which is not supported on Windows", {
    hint: "Use secret://file/… or secret://exec/… instead.",
  });
}

function missing(program: string): SecretFailure {
  const hint = program === "secret-tool" ? "Install it (Debian: libsecret-tools)." : undefined;
  return new SecretFailure(`needs the program ${program}, which was not found`, hint === undefined ? {} : { hint });
}
