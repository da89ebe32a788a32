/**
 * stdout for a protocol alone. Whatever else prints there, such as `console.log` in a plugin or a logger that writes to the file
 * descriptor, goes to stderr from then on. What a child of a plugin prints with an inherited stdout cannot be caught.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Writable } from "node:stream";

const STDOUT = 1;
const STDERR = 2;

export interface ClaimedStdout {
  /** The only way left to the real stdout. */
  readonly output: Writable;
  /** Gives stdout back once everything is written. */
  release(): Promise<void>;
}

export function claimStdout(): ClaimedStdout {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  const giveBack = divertDescriptor();

  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      write(chunk, (error) => done(error));
    },
  });
  const onError = (error: Error): void => void output.destroy(error);
  stdout.on("error", onError);
  // Whoever writes learns of it; a client that went away is not a fault of this process.
  output.on("error", () => {});

  return {
    output,
    async release() {
      if (!output.destroyed) await new Promise<void>((done) => output.end(() => done()));
      stdout.off("error", onError);
      stdout.write = write;
      giveBack();
    },
  };
}

/** Functions whose first argument can be a file descriptor. */
const BY_DESCRIPTOR = [
  "write",
  "writeSync",
  "writev",
  "writevSync",
  "writeFile",
  "writeFileSync",
  "appendFile",
  "appendFileSync",
] as const;
/** Those of promises take no descriptor, but the names that systems have for it, as the others do. */
const BY_NAME = ["writeFile", "appendFile"] as const;
const NAMES: ReadonlySet<unknown> = new Set([
  "/dev/stdout",
  "/dev/fd/1",
  "/proc/self/fd/1",
  `/proc/${process.pid}/fd/1`,
]);

type Writes = (...args: unknown[]) => unknown;

/** Loggers write to file descriptors, past `process.stdout`. */
function divertDescriptor(): () => void {
  const isStdout = (place: unknown): boolean => place === STDOUT || NAMES.has(place);
  // The arguments go on as they came; only the first may be another one.
  const behind =
    (real: Writes): Writes =>
    (place, ...rest) =>
      Reflect.apply(real, fs, [isStdout(place) ? STDERR : place, ...rest]);
  const behindPromise =
    (real: Writes, write: Writes): Writes =>
    (place, ...rest) =>
      isStdout(place) ? promised(write, [STDERR, ...rest]) : Reflect.apply(real, fs.promises, [place, ...rest]);
  const { promises } = fs;
  const stops = [
    ...BY_NAME.map((name) => replaced(promises, name, behindPromise(promises[name] as Writes, fs[name] as Writes))),
    ...BY_DESCRIPTOR.map((name) => replaced(fs, name, behind(fs[name] as Writes))),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const stop of stops) stop();
    syncBuiltinESMExports();
  };
}

/** The returned function puts back what was there. */
function replaced<Part extends object>(part: Part, name: keyof Part, by: Writes): () => void {
  const before = part[name];
  Object.assign(part, { [name]: by });
  return () => void Object.assign(part, { [name]: before });
}

function promised(write: Writes, args: readonly unknown[]): Promise<void> {
  return new Promise((resolve, reject) => {
    write(...args, (error: unknown) => (error == null ? resolve() : reject(error)));
  });
}
