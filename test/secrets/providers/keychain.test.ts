import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { userInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { keychainProvider, storeInKeychain } from "../../../src/secrets/providers/keychain.ts";
import { failureOf, Place } from "../support.ts";
import { isMissing } from "../../support/skips.ts";

const LIBSECRET = "secret-tool";
const signal = new AbortController().signal;
const REFERENCE = "secret://keychain/https://github.com/ana";
const entry = { service: "https://github.com", account: "ana", value: "p \"q\" 'r' \\ 1" };

/** Speaks the command line of libsecret's program, and keeps what it is given in a file. */
const SECRET_TOOL = `
  const fs = require("node:fs"), file = env.HOME + "/keyring.json";
  const kept = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
  const [command, ...rest] = argv;
  if (env.LOCKED) { process.stderr.write("secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY\\n"); process.exitCode = 1; }
  else if (command === "store" && rest[0].startsWith("--label=")) { kept[rest.slice(1)] = input; fs.writeFileSync(file, JSON.stringify(kept)); }
  else if (command === "lookup" && kept[rest] !== undefined) print(kept[rest]);
  else process.exitCode = 1;
`;

/** Speaks that of macOS, as far as it is used: arguments for looking up, commands on stdin for storing. */
const SECURITY = `
  const fs = require("node:fs"), file = env.HOME + "/keyring.json";
  const kept = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
  if (argv[0] === "-i") {
    const [, service, account, hex] = /^add-generic-password -U -s "((?:[^"\\\\]|\\\\.)*)" -a "((?:[^"\\\\]|\\\\.)*)" -X ([0-9a-f]+)\\n$/.exec(input) ?? [];
    if (hex === undefined) process.exitCode = 2;
    else { kept[service + "," + account] = Buffer.from(hex, "hex").toString(); fs.writeFileSync(file, JSON.stringify(kept)); }
  } else if (argv.join() === "find-generic-password,-s," + argv[2] + ",-a," + argv[4] + ",-w" && kept[argv[2] + "," + argv[4]] !== undefined) {
    print(kept[argv[2] + "," + argv[4]] + "\\n");
  } else { process.stderr.write("security: SecKeychainSearchCopyNext: The specified item could not be found in the keychain.\\n"); process.exitCode = 44; }
`;

describe.each([
  ["linux", "secret-tool", SECRET_TOOL],
  ["darwin", "security", SECURITY],
] as const)("[guard-07a] secret://keychain on %s", (platform, program, script) => {
  const providers = [keychainProvider(platform)];

  it("stores through stdin, replaces, and looks up", async () => {
    const place = new Place();
    place.program(program, `${script}; require("node:fs").appendFileSync(env.HOME + "/argv", JSON.stringify(argv))`);
    const access = { env: place.env(), signal };
    expect((await failureOf(place.value(REFERENCE, {}, { providers }))).message).toBe(
      `${REFERENCE} is not in the keychain`,
    );
    for (const value of ["first", entry.value]) {
      await storeInKeychain({ ...entry, value }, access, platform);
      expect(await place.value(REFERENCE, {}, { providers })).toBe(value);
    }
    const argv = execFileSync("cat", [`${place.dir}/argv`], { encoding: "utf8" });
    expect(argv).not.toContain("first");
    expect(argv).not.toContain(Buffer.from("first").toString("hex"));
  });

  it("says what is missing where there is no such program", async () => {
    const place = new Place();
    expect((await failureOf(place.value(REFERENCE, {}, { providers }))).message).toContain(
      `needs the program ${program}, which was not found`,
    );
    await expect(storeInKeychain(entry, { env: place.env(), signal }, platform)).rejects.toThrow("was not found");
  });
});

it("tells a keychain that does not work from a value that is not there", async () => {
  const place = new Place();
  place.program("secret-tool", SECRET_TOOL);
  const error = await failureOf(place.value(REFERENCE, { LOCKED: "1" }, { providers: [keychainProvider("linux")] }));
  expect(error.message).toContain("was not given by the keychain: secret-tool: Cannot autolaunch D-Bus");
  const own = await failureOf(
    place.value("secret://keychain/toolcrib/TOKEN", {}, { providers: [keychainProvider("linux")] }),
  );
  expect(own.hint).toBe("toolcrib secrets set TOKEN stores it.");
});

it("takes on macOS only what it can give back, and nothing on Windows", async () => {
  const place = new Place();
  place.program("security", SECURITY);
  await expect(storeInKeychain({ ...entry, value: "zwölf" }, { env: place.env(), signal }, "darwin")).rejects.toThrow(
    "printable ASCII",
  );
  expect((await failureOf(place.value(REFERENCE, {}, { providers: [keychainProvider("win32")] }))).message).toContain(
    "not supported on Windows",
  );
});

const works = realKeychain();

it.skipIf(!works)("[guard-09] works with the real keychain of this machine", async () => {
  const account = `test-${randomUUID()}`;
  const place = new Place();
  const env = { ...process.env, ...(works === undefined ? {} : { HOME: works }) };
  try {
    await storeInKeychain({ service: "toolcrib-test", account, value: entry.value }, { env, signal });
    expect(await place.value(`secret://keychain/toolcrib-test/${account}`, env)).toBe(entry.value);
  } finally {
    if (process.platform === "darwin")
      execFileSync("security", ["delete-generic-password", "-s", "toolcrib-test", "-a", account], { env });
    else execFileSync(LIBSECRET, ["clear", "service", "toolcrib-test", "account", account], { env });
  }
});

/** The home that the keychain belongs to, or undefined with the reason printed. */
function realKeychain(): string | undefined {
  // Tests have a home of their own, in which a keychain of macOS would not be found.
  const home = userInfo().homedir;
  const env = { ...process.env, HOME: home };
  try {
    if (process.platform === "darwin")
      execFileSync("security", ["default-keychain"], { env, stdio: "pipe", timeout: 5000 });
    else {
      const probe = ["service", "toolcrib-test", "account", "probe"];
      execFileSync(LIBSECRET, ["store", "--label=toolcrib test", ...probe], {
        env,
        input: "x",
        stdio: "pipe",
        timeout: 5000,
      });
      execFileSync(LIBSECRET, ["clear", ...probe], { env, stdio: "pipe", timeout: 5000 });
    }
    return home;
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    isMissing("the real keychain", why);
    return undefined;
  }
}
