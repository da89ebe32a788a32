/** What bubblewrap and its launchers say when they fail, in words a person can act on. */
import { ToolcribError } from "../../model/errors.ts";
import type { CageSettings, RunEnd } from "./cage.ts";
import type { CageUser } from "./cage-user.ts";
import type { NamedPath } from "./named-mounts.ts";

export const OTHER_CAGE = 'Or use the sandbox "container", or "none" for a program that you trust.';

/** What is no fault of the cage is left to the program's own words. */
export function explainEnd(end: RunEnd, settings: CageSettings, wasOutOfMemory: boolean): ToolcribError | undefined {
  if (wasOutOfMemory) {
    const message = `was ended because it wanted more memory than its sandbox gives it (${settings.memory} bytes)`;
    return new ToolcribError("server_unavailable", message, {
      hint: "Raise `sandbox.memory`.",
      details: { ...exit(end) },
    });
  }
  const isRunning = end.exitCode === null && end.signal === null;
  if (end.heard || end.exitCode === 0 || isRunning) return undefined;
  const line =
    /^(?:bwrap|toolcrib-cage|systemd-run|prlimit|setpriv|Failed to (?:create|start|connect)[^:]*): ?.*$/m.exec(
      end.stderr,
    )?.[0];
  if (line !== undefined) return cageFailure(line, end);
  return new ToolcribError("server_unavailable", programEnd(end), {
    hint:
      "In its sandbox it sees only the system, its `cwd` and the paths that `sandbox` names, and has a network only " +
      'with `"network": "host"`. Does it need more?',
    details: { ...exit(end) },
  });
}

/** What a program lacks because it runs as another user than the hub, which is root. */
export function explainUser(
  end: RunEnd,
  { uid, gid }: Pick<CageUser, "uid" | "gid">,
  named: readonly NamedPath[],
): ToolcribError | undefined {
  if (end.heard) return undefined;
  const who = `the hub runs as root, and the program in its sandbox as the user ${uid}`;
  const [, number] = /^toolcrib-cage: cannot use (\d+)$/m.exec(end.stderr) ?? [];
  const lacking = number === undefined ? undefined : named[Number(number)];
  if (lacking !== undefined) {
    const { key, path, writable } = lacking;
    const verb = writable ? "write" : "read";
    const fix = writable ? `chown -R ${uid}:${gid} ${path}` : `chmod -R o+rX ${path}`;
    return invalid(
      `${key} names ${path}, which the program may not ${verb}: ${who}. Run ${fix}`,
      `Or give it to the user that is to ${verb} it: the program runs as the owner of its first \`write\` path.`,
      end,
    );
  }
  if (/^(?:\S*\/)?env: (?:unrecognized|invalid|illegal) option.*S/m.test(end.stderr)) {
    return invalid(
      "the names in its `env` that no shell can set need `env -S`, which this machine does not have",
      "Install GNU coreutils, or use names of letters, digits and _ that are not a shell's own.",
      end,
    );
  }
  const denied =
    /^(?:toolcrib-cage: [^/]*(?:exec|line)[^/]*|setpriv: failed to execute |bwrap: execvp |(?:\S*\/)?env: .?)\/.*Permission denied$/m;
  if (!denied.test(end.stderr)) return undefined;
  return invalid(
    `its program may not be started: ${who}`,
    "Run chmod -R o+rX on the folder that it is installed in.",
    end,
  );
}

function cageFailure(line: string, end: RunEnd): ToolcribError {
  const execFailed = /^(?:bwrap: execvp |toolcrib-cage: [^/]*)(\/.+): (?:No such file or directory|not found)$/.exec(
    line,
  );
  if (execFailed !== null) {
    return invalid(
      `the program ${execFailed[1]} cannot be started in its sandbox: it or the program that its first line names is not in there`,
      "Name the folders that it needs in `sandbox.read`.",
      end,
    );
  }
  if (line.startsWith("setpriv: ")) {
    return invalid(
      `the hub runs as root, and the program cannot get another user: ${line}`,
      "Root needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP for that, and a system call filter that lets it. Or run the hub " +
        `as another user. ${OTHER_CAGE}`,
      end,
    );
  }
  if (/namespace|uid map|gid map|setting up uid|Operation not permitted|Permission denied.*uid_map/i.test(line)) {
    return invalid(
      `bubblewrap may not make a sandbox on this machine: ${line}`,
      "User namespaces must be allowed: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, on Ubuntu " +
        `kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap. ${OTHER_CAGE}`,
      end,
    );
  }
  if (/Unknown option/.test(line)) {
    return invalid(`bubblewrap is too old: ${line}`, `Version 0.5 or later is needed. ${OTHER_CAGE}`, end);
  }
  return invalid(`the sandbox could not be made: ${line}`, OTHER_CAGE, end);
}

function programEnd(end: RunEnd): string {
  const reason = end.signal === null ? `exited with code ${end.exitCode}` : `was killed by ${end.signal}`;
  return end.stderr === "" ? reason : `${reason}; the last lines of its stderr:\n${end.stderr}`;
}

function invalid(message: string, hint: string, end: RunEnd): ToolcribError {
  // Said again, because a request that waits for the answer fails with another code.
  return new ToolcribError("invalid_config", message, {
    hint,
    details: { sent: false, permanent: true, ...exit(end) },
  });
}

function exit({ exitCode, signal }: RunEnd): { exitCode: number | null; signalCode: NodeJS.Signals | null } {
  return { exitCode, signalCode: signal };
}
