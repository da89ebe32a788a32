/** The keychain of the machine, through its own program: `security` on macOS, `secret-tool` (libsecret) on Linux. */
import { runCommand, SecretFailure, type SecretProvider, withoutFinalNewline } from "../provider.ts";

interface Access {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** The exit code of `security` if there is no such entry; `secret-tool` exits with 1 and prints nothing. */
const NOT_FOUND_ON_MACOS = 44;

interface Entry {
  readonly service: string;
  readonly account: string;
}

export function keychainProvider(platform: NodeJS.Platform = process.platform): SecretProvider {
  return {
    name: "keychain",
    cached: true,
    async resolve({ path }, { env, signal }) {
      const slash = path.lastIndexOf("/");
      const [service, account] = [path.slice(0, slash), path.slice(slash + 1)];
      const result = await runKeychain(
        platform,
        { env, signal },
        {
          security: ["find-generic-password", "-s", service, "-a", account, "-w"],
          "secret-tool": ["lookup", "service", service, "account", account],
        },
      );
      if (isNotFound(result)) {
        throw new SecretFailure("is not in the keychain", {
          hint:
            service === "toolcrib"
              ? `toolcrib secrets set ${account} stores it.`
              : `Check service ${JSON.stringify(service)} and account ${JSON.stringify(account)}.`,
        });
      }
      if (result.exitCode !== 0) throw new SecretFailure(`was not given by the keychain: ${result.reason}`);
      const value = withoutFinalNewline(result.stdout);
      if (value === "") throw new SecretFailure("is empty");
      return value;
    },
  };
}

/**
 * Stores a value for `secret://keychain/<service>/<account>`, replacing the one that is there.
 * The value goes through stdin: arguments are visible to every user of the machine.
 */
export async function storeInKeychain(
  { service, account, value }: Entry & { readonly value: string },
  access: Access,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  const program = programOf(platform);
  if (program === "security" && !/^[\x20-\x7e]+$/.test(value)) {
    // Reading such a value back returns hexadecimal digits instead.
    throw new SecretFailure("the macOS keychain's own program takes printable ASCII only");
  }
  const quote = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;
  const hex = Buffer.from(value, "utf8").toString("hex");
  const command = `add-generic-password -U -s ${quote(service)} -a ${quote(account)} -X ${hex}\n`;
  const input = program === "security" ? command : value;
  const result = await runKeychain(
    platform,
    { ...access, input },
    {
      security: ["-i"],
      "secret-tool": ["store", `--label=${service} ${account}`, "service", service, "account", account],
    },
  );
  if (result.exitCode !== 0) throw new SecretFailure(`${program} failed: ${result.reason}`);
}

/** Removes an entry; a missing one is not a failure. */
export async function removeFromKeychain({ service, account }: Entry, access: Access): Promise<void> {
  const { platform } = process;
  const result = await runKeychain(platform, access, {
    security: ["delete-generic-password", "-s", service, "-a", account],
    "secret-tool": ["clear", "service", service, "account", account],
  });
  if (result.exitCode === 0 || isNotFound(result)) return;
  throw new SecretFailure(`${programOf(platform)} failed: ${result.reason}`);
}

type KeychainProgram = "security" | "secret-tool";
type KeychainResult = Awaited<ReturnType<typeof runCommand>>;

function runKeychain(
  platform: NodeJS.Platform,
  options: Access & { readonly input?: string },
  args: Readonly<Record<KeychainProgram, readonly string[]>>,
): Promise<KeychainResult> {
  const program = programOf(platform);
  const hint = program === "secret-tool" ? "Install it (Debian: libsecret-tools)." : undefined;
  return runCommand(program, args[program], { ...options, missing: { hint } });
}

function isNotFound({ exitCode, complaint }: KeychainResult): boolean {
  return exitCode === NOT_FOUND_ON_MACOS || (exitCode === 1 && complaint === "");
}

function programOf(platform: NodeJS.Platform): KeychainProgram {
  if (platform === "darwin") return "security";
  if (platform !== "win32") return "secret-tool";
  throw new SecretFailure("is in a keychain, which is not supported on Windows", {
    hint: "Use secret://file/… or secret://exec/… instead.",
  });
}
