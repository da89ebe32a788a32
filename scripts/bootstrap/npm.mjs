// @ts-check
/** Runs npm's own program under a Node of our choice, so that its engine checks see that Node and not the system's. */
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";

/** Settings of the npm that started us which would send its child to another folder. */
const FOREIGN_SETTINGS = ["npm_config_prefix", "npm_config_local_prefix", "npm_config_global", "npm_config_omit"];

/** @param {NodeJS.ProcessEnv} env @param {string} nodePath */
export function withNodeFirst(env, nodePath) {
  const key = Object.keys(env).find((name) => name.toUpperCase() === "PATH") ?? "PATH";
  return { ...env, [key]: [dirname(nodePath), env[key]].filter(Boolean).join(delimiter) };
}

/**
 * Resolves when npm ended well; what it printed is shown only when it did not.
 * @param {string} nodePath @param {readonly string[]} args @param {string} cwd @returns {Promise<void>}
 */
export function runNpm(nodePath, args, cwd) {
  const env = withNodeFirst(process.env, nodePath);
  for (const name of FOREIGN_SETTINGS) delete env[name];
  return new Promise((resolve, reject) => {
    const child = spawn(nodePath, [npmProgram(process.env), ...args, "--loglevel=warn"], {
      cwd,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    /** @type {Buffer[]} */
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) return resolve();
      process.stderr.write(Buffer.concat(output));
      reject(new Error(`npm ${args[0]} ended with ${signal ?? `exit code ${code}`}.`));
    });
  });
}

/** @param {NodeJS.ProcessEnv} env */
export function npmProgram(env) {
  const started = env["npm_execpath"];
  if (started !== undefined && basename(started) === "npm-cli.js") return started;

  const beside = dirname(process.execPath);
  const candidates = [
    join(beside, "node_modules", "npm", "bin", "npm-cli.js"),
    join(beside, "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
  ];
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const link = join(folder, "npm");
    if (folder !== "" && existsSync(link)) candidates.push(realpathSync(link));
  }
  const found = candidates.find((path) => basename(path) === "npm-cli.js" && existsSync(path));
  if (found === undefined) throw new Error("npm was not found; run this as `npm run <task>`.");
  return found;
}
