// @ts-check
/**
 * Programs that tests use and npm does not bring: browsers, PostgreSQL, NATS, bubblewrap and podman. They are installed
 * where that needs nobody's permission, on a Debian as root. Anywhere else the tests that need them say why they are
 * skipped.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const UPDATE_MS = 60_000;
const INSTALL_MS = 240_000;

/** @typedef {{ found: readonly string[], packages: readonly string[] }} Program */
/** @type {readonly Program[]} */
const PROGRAMS = [
  {
    found: ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
    packages: ["chromium", "fonts-liberation"],
  },
  { found: ["/usr/bin/firefox-esr", "/usr/bin/firefox"], packages: ["firefox-esr"] },
  { found: ["/usr/lib/postgresql"], packages: ["postgresql"] },
  { found: ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"], packages: ["nats-server"] },
  { found: ["/usr/bin/bwrap"], packages: ["bubblewrap"] },
  // With what publishes ports; the rest of what podman recommends is for users other than root.
  { found: ["/usr/bin/podman"], packages: ["podman", "containernetworking-plugins", "iptables"] },
  // podman itself is content with crun, which needs more of the machine.
  { found: ["/usr/sbin/runc", "/usr/bin/runc"], packages: ["runc"] },
];

/**
 * @typedef {object} Machine What is looked at and done; given so that tests can stand in for it.
 * @property {(path: string) => boolean} exists
 * @property {() => boolean} mayInstall
 * @property {(command: readonly string[], timeout: number) => string | undefined} run The reason of a failure.
 */

/** @type {Machine} */
const thisMachine = {
  exists: existsSync,
  mayInstall: () => process.getuid?.() === 0 && existsSync("/usr/bin/apt-get"),
  run([command = "", ...args], timeout) {
    // dpkg refuses to work without the programs in these folders, which are not on everybody's path.
    const path = `${process.env["PATH"] ?? "/usr/bin:/bin"}:/usr/local/sbin:/usr/sbin:/sbin`;
    const env = { ...process.env, PATH: path, DEBIAN_FRONTEND: "noninteractive" };
    const { status, error, stderr } = spawnSync(command, args, { env, timeout, encoding: "utf8", maxBuffer: 64 << 20 });
    if (status === 0) return undefined;
    return error?.message ?? stderr.trim().split("\n").at(-1) ?? `exit code ${status}`;
  },
};

/**
 * Never fails: what cannot be installed is said.
 * @param {{ say: (line: string) => void, machine?: Machine }} options
 */
export function installSystemPackages({ say, machine = thisMachine }) {
  const missing = PROGRAMS.filter(({ found }) => !found.some((path) => machine.exists(path)));
  if (missing.length === 0) return;
  const packages = missing.flatMap((program) => program.packages);
  if (!machine.mayInstall()) {
    say(
      `Some tests will be skipped: ${packages.join(", ")} missing, and only root on Debian can have them installed here.`,
    );
    return;
  }
  say(`Installing ${packages.join(", ")} ...`);
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...packages];
  // Lists of packages that are there mostly do; fetching new ones takes longer than the rest.
  if (machine.run(install, INSTALL_MS) === undefined) return;
  const failure = machine.run(["apt-get", "update"], UPDATE_MS) ?? machine.run(install, INSTALL_MS);
  if (failure !== undefined) say(`They could not be installed, so some tests will be skipped: ${failure}`);
}

/** Whether a run of these tests needs them: all tests, or some that are named so. @param {readonly string[]} args */
export function needsSystemPackages(args) {
  const files = args.filter((arg) => !arg.startsWith("-"));
  return (
    files.length === 0 ||
    files.some((file) => /store|postgres|page|web|browser|sandbox|container|cluster|nats|doctor/.test(file))
  );
}
