/** Why a program could not be started, in words a person can act on. */
import { statSync } from "node:fs";
import { basename } from "node:path";
import { ToolcribError } from "../../model/errors.ts";

const SOURCES: Readonly<Record<string, string>> = {
  npx: "It comes with Node.js: https://nodejs.org",
  npm: "It comes with Node.js: https://nodejs.org",
  node: "It is Node.js: https://nodejs.org",
  uvx: "It comes with uv: https://docs.astral.sh/uv",
  uv: "https://docs.astral.sh/uv",
  bunx: "It comes with Bun: https://bun.sh",
  docker: "https://docs.docker.com/get-docker",
  podman: "https://podman.io",
};

/** Checked before, because a missing folder and a missing program are the same ENOENT to spawn. */
export function workingFolderProblem(cwd: string | undefined): ToolcribError | null {
  if (cwd === undefined || statSync(cwd, { throwIfNoEntry: false })?.isDirectory() === true) return null;
  return unavailable(`the working directory does not exist: ${cwd}`, "Create it, or correct `cwd`.", "ENOENT");
}

export function startFailure(error: unknown, command: string): ToolcribError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const name = basename(command).replace(/\.(cmd|exe|bat)$/i, "");
  switch (code) {
    case "ENOENT":
      return unavailable(
        `command not found: ${command}`,
        `Install it or give its full path as \`command\`.${SOURCES[name] === undefined ? "" : ` ${SOURCES[name]}`}`,
        code,
      );
    case "EACCES":
    case "EPERM":
      return unavailable(
        `command may not be executed: ${command}`,
        "Check that it is a program and marked as executable.",
        code,
      );
    case "ENOEXEC":
      return unavailable(
        `command is not a program for this system: ${command}`,
        "A script needs a first line such as #!/usr/bin/env node.",
        code,
      );
    case "E2BIG":
      return unavailable(
        "the arguments and environment are too long for this system",
        "Shorten `args` or `env`.",
        code,
      );
    case "EAGAIN":
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return unavailable(
        `the system has no room for another process (${code})`,
        "Close programs or raise the limits.",
        code,
      );
    case "ERR_INVALID_ARG_VALUE":
      return new ToolcribError("invalid_config", "`command`, `args`, `env` or `cwd` holds a null character.", {
        details: { sent: false },
      });
    default: {
      const reason = error instanceof Error ? error.message : String(error);
      return unavailable(`could not start ${command}: ${reason}`, undefined, code);
    }
  }
}

function unavailable(message: string, hint: string | undefined, code: unknown): ToolcribError {
  return new ToolcribError("server_unavailable", message, { hint, details: { sent: false, reason: code } });
}
