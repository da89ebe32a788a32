/** Runs git or npm and explains their failures. */
import { runProgram } from "../../base/programs.ts";
import { type ErrorCode, ToolcribError } from "../../model/errors.ts";
import { printable } from "./unpack-archive.ts";

interface FetchProgramOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The task, for messages: `git could not fetch https://…`. */
  readonly task: string;
  /** Takes out of the program's complaint what must not be shown. */
  readonly mask?: (text: string) => string;
  /** Finds the cause in what the program printed on stderr. */
  readonly explain: (stderr: string) => ProgramFailure;
}

const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Resolves with stdout. */
export async function runFetchProgram(
  program: string,
  args: readonly string[],
  { task, explain, mask = (text) => text, ...options }: FetchProgramOptions,
): Promise<string> {
  const end = await runProgram(program, args, { ...options, maxOutputBytes: MAX_OUTPUT_BYTES });
  switch (end.kind) {
    case "exited": {
      if (end.code === 0) return end.stdout;
      const { code, reason, hint } = explain(mask(end.stderr));
      throw new ToolcribError(code, `${task} failed: ${printable(reason) || `exit code ${end.code}`}`, { hint });
    }
    case "not_found":
      throw new ToolcribError("not_found", `The program ${program} was not found.`, {
        hint: `Install ${program}, or download the skill and install it from its folder.`,
      });
    case "timed_out":
      throw new ToolcribError("timeout", `${task} took longer than ${options.timeoutMs / 1000} seconds.`, {
        hint: "Try again, or download it and install it from its folder.",
      });
    case "aborted":
      throw new ToolcribError("cancelled", `${task} was interrupted.`);
    default: {
      const reason = end.kind === "killed" ? `it was ended by ${end.signal}` : `${program} could not be run to its end`;
      throw new ToolcribError("tool_error", `${task} failed: ${reason}.`);
    }
  }
}

interface ProgramFailure {
  readonly code: ErrorCode;
  /** Empty if the program said nothing. */
  readonly reason: string;
  /** How to solve it. */
  readonly hint: string;
}

const OFFLINE_HINT =
  "Check the network and the proxy settings, then try again; or download it and install it from its folder.";

/** The first `fatal:` or `error:` says it; what follows is advice. */
export function explainGitFailure(stderr: string): ProgramFailure {
  const lines = linesOf(stderr).filter((line) => !/^(?:hint|warning):/i.test(line));
  // Over ssh git knows no more than that; the reason is in the lines before.
  const isVague = (line: string): boolean => /^fatal: could not read from remote repository/i.test(line);
  const telling = lines.find((line) => /^(?:fatal|error):/i.test(line) && !isVague(line)) ?? lines[0] ?? "";
  const reason = telling.replace(/^(?:fatal|error):\s*/i, "");
  // Quoted addresses and names may contain any words.
  const words = telling.replaceAll(/'[^']*'/g, "");
  if (NO_CONNECTION.test(words)) return { code: "server_unavailable", reason, hint: OFFLINE_HINT };
  if (NO_ACCESS.test(words)) {
    const hint = "Check the address, and that git on this machine may read it: try `git ls-remote <address>`.";
    return { code: "unauthorized", reason, hint };
  }
  if (/couldn't find remote ref|not our ref/i.test(words)) {
    return { code: "not_found", reason, hint: "Check the branch, tag or commit after # in the address." };
  }
  if (/not found|does not appear to be a git repository|does not exist/i.test(words)) {
    const hint = "Check the address. A private repository that you may not read looks the same.";
    return { code: "not_found", reason, hint };
  }
  return { code: "tool_error", reason, hint: "Try `git ls-remote <address>`, or download it and install its folder." };
}

const NO_CONNECTION =
  /could not resolve host|failed to connect|could ?n[o']t connect|connection (?:refused|timed out|reset|closed)|network is unreachable|no route to host|temporary failure in name resolution|operation timed out|empty reply|ssl|tls|certificate|returned error: 5\d\d/i;
const NO_ACCESS =
  /authentication failed|could not read (?:username|password)|permission denied|host key verification failed|returned error: 40[13]/i;

/** npm prints `code E404`, then an explanation, then advice, a stack and the path of its log. */
export function explainNpmFailure(stderr: string): ProgramFailure {
  const lines = linesOf(stderr)
    .filter((line) => /^npm (?:error|ERR!)/i.test(line))
    .map((line) => line.replace(/^npm (?:error|ERR!) ?/i, ""));
  const code = lines.map((line) => /^code (\S+)$/.exec(line)?.[1]).find((each) => each !== undefined);
  const words = lines.filter((line) => !NPM_NOISE.test(line)).map((line) => line.replace(NPM_TOPIC, "").trim());
  const explained = words.find((line) => line !== "" && !NPM_NOISE.test(line));
  const reason = [code, explained].filter((part) => part !== undefined).join(": ") || (linesOf(stderr)[0] ?? "");
  return { reason, ...npmErrorCode(code ?? "") };
}

/** Begins every line of an explanation: `404 Not Found - GET …`, `network request to …`. */
const NPM_TOPIC = /^(?:\d{3}|network|notarget|enoent|need auth)(?: |$)/;
const NPM_NOISE =
  /^(?:code|syscall|errno|path|dest) \S|^\s|^[{}]|^(?:log files|note that|a complete log|tarball, folder|if you are behind|this is a problem|in most cases)/i;

function npmErrorCode(code: string): Pick<ProgramFailure, "code" | "hint"> {
  if (/^(?:E404|ETARGET|ENOVERSIONS)$/.test(code)) {
    const hint = "Check name and version. A private package needs its registry and a login in .npmrc.";
    return { code: "not_found", hint };
  }
  if (/^(?:E401|E403|ENEEDAUTH)$/.test(code)) {
    return { code: "unauthorized", hint: "Log in to the registry with `npm login`, or check its token in .npmrc." };
  }
  if (NPM_NO_CONNECTION.test(code)) return { code: "server_unavailable", hint: OFFLINE_HINT };
  return { code: "tool_error", hint: "Try `npm pack <package>`, or download it and install it from its folder." };
}

const NPM_NO_CONNECTION =
  /^(?:ECONN\w+|ENOTFOUND|EAI_\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPROTO|ENOTCACHED|E5\d\d|E429|ERR_SOCKET_TIMEOUT|FETCH_ERROR|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|UNABLE_TO_\w+|\w*SELF_SIGNED_CERT\w*)$/;

function linesOf(text: string): string[] {
  return text.split(/[\r\n]+/).filter((line) => line.trim() !== "");
}
