/** The process: real streams in, exit code out. */
import { runCommandLine } from "./program.ts";

for (const stream of [process.stdout, process.stderr]) {
  // `toolcrib list | head` closes the pipe early. What is left to say is dropped; the command still ends properly,
  // so that its servers are closed.
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const { env, stdin, stdout, stderr } = process;
process.exit(await runCommandLine(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr }));
