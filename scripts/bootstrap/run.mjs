// @ts-check
/** Runs one program under the chosen Node in our place: same terminal, same signals, same exit code. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { withNodeFirst } from "./npm.mjs";

const PASSED_ON = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);

/**
 * Resolves with the exit code; 128 + number for a signal, as shells say it.
 * @param {string} nodePath @param {readonly string[]} args @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options @returns {Promise<number>}
 */
export function runNode(nodePath, args, { cwd, env = {} }) {
  return new Promise((resolve, reject) => {
    const child = spawn(nodePath, args, {
      cwd,
      env: withNodeFirst({ ...process.env, ...env }, nodePath),
      stdio: "inherit",
    });
    const handlers = PASSED_ON.map((signal) => {
      // A terminal sends Ctrl-C to the child as well; a second one would look like impatience.
      const handler = () => void (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal));
      process.on(signal, handler);
      return () => process.off(signal, handler);
    });
    const done = () => handlers.forEach((remove) => remove());
    child.on("error", (error) => {
      done();
      reject(error);
    });
    child.on("exit", (code, signal) => {
      done();
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
}
