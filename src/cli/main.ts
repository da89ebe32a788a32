/** The process: real streams in, exit code out. */
import { asToolcribError } from "../model/errors.ts";
import { terminalJson, terminalText } from "../base/visible-text.ts";
import { Redactor } from "../secrets/redactor.ts";
import { exitCodeOf } from "./command.ts";
import { runCommandLine } from "./program.ts";

for (const stream of [process.stdout, process.stderr]) {
  // `toolcrib list | head` closes the pipe early. The rest of the output is dropped, but the command runs to its end,
  // so that its servers are closed.
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const { env, stdin, stdout, stderr } = process;
const redactor = new Redactor();

// An uncaught error, such as one in a plugin's timer. A stack trace or Node's own report could show secrets.
process.on("uncaughtException", (thrown) => {
  const message = redactor.mask(asToolcribError(thrown).message).split("\n", 1)[0] ?? "";
  const error = { code: "internal", message: `Unexpected error: ${message}` } as const;
  if (process.argv.includes("--json")) stdout.write(`${terminalJson({ error }, 2)}\n`);
  else stderr.write(`error: ${terminalText(error.message)}\n`);
  process.exit(exitCodeOf(error.code));
});

// Not awaited here: the built form is CommonJS.
void runCommandLine(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr, redactor }).then((code) =>
  process.exit(code),
);
