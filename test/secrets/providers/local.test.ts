/** The providers that need nothing but this machine. */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { userSecretFile } from "../../../src/secrets/providers/local.ts";
import { failureOf, Place } from "../support.ts";
import { eventually } from "../../support/eventually.ts";

const PIPE_MAKER = "mkfifo";

describe("[guard-07a] secret://file", () => {
  it("reads a path beside the config, from the root, and in the home", async () => {
    const place = new Place();
    const file = place.write("keys/a", "value\n");
    for (const path of ["keys/a", "./keys/a", file, `/${file.slice(1)}`, file.slice(1), "~/keys/a"]) {
      expect(await place.value(`secret://file/${path}`), path).toBe("value");
    }
  });

  it("looks beside the config first, and only there for ./", async () => {
    const place = new Place();
    const file = place.write("etc/a", "absolute");
    place.write(`config/${file.slice(1)}`, "beside");
    const options = { baseDir: join(place.dir, "config") };
    const value = async (path: string): Promise<string> =>
      (await place.secrets().resolve(`secret://file/${path}`, options)).value;
    expect(await value(file.slice(1))).toBe("beside");
    expect(await value(file)).toBe("absolute");
    expect((await failureOf(value(`./no${file}`))).message).toBe(
      `secret://file/./no${file} is not there: no file ${place.dir}/config/no${file}`,
    );
  });

  it.each([
    ["a\n", "a"],
    ["a\r\n", "a"],
    ["a\n\n", "a"],
    [" a \nb", " a \nb"],
    ["äöü😀", "äöü😀"],
  ])("takes %j as %j", async (content, value) => {
    const place = new Place();
    place.write("s", content);
    expect(await place.value("secret://file/s")).toBe(value);
  });

  it("refuses what cannot be a secret, at once and without a value in the message", async () => {
    const place = new Place();
    place.write("empty", "\n");
    place.write("binary", Buffer.from([0x61, 0xff, 0xfe]));
    place.write("large", "x".repeat(64 * 1024 + 1));
    place.write("largest", "x".repeat(64 * 1024));
    execFileSync(PIPE_MAKER, [join(place.dir, "pipe")]);
    const message = async (name: string): Promise<string> =>
      (await failureOf(place.value(`secret://file/./${name}`))).message;
    expect(await message("empty")).toContain("is empty");
    expect(await message("binary")).toContain("is not UTF-8 text");
    expect(await message("large")).toContain("is larger than 64 KiB");
    expect(await message("pipe")).toContain("is not a regular file");
    expect(await message("bin")).toContain("is not there");
    expect(await message("largest/x")).toContain("is not there");
    expect(await message(".")).toContain("is not a regular file");
    expect(await place.value("secret://file/largest")).toHaveLength(64 * 1024);
  });

  it("reads the file again each time", async () => {
    const place = new Place();
    const secrets = place.secrets();
    for (const value of ["one", "two"]) {
      place.write("s", value);
      expect((await secrets.resolve("secret://file/s", { baseDir: place.dir })).value).toBe(value);
    }
  });
});

describe("[guard-07a] secret://exec", () => {
  const exec = { show: ["keeper", "show", "--raw"], alone: ["keeper"] };

  it("runs the configured program with the rest of the path as one argument", async () => {
    const place = new Place();
    place.program("keeper", "print(JSON.stringify([argv, input, process.cwd()]) + '\\n')");
    expect(JSON.parse(await place.value("secret://exec/show/work/git", {}, { exec }))).toEqual([
      ["show", "--raw", "work/git"],
      "",
      place.dir,
    ]);
    expect(JSON.parse(await place.value("${secret://exec/show/a b;$(id)`id`}", {}, { exec }))[0]).toEqual([
      "show",
      "--raw",
      "a b;$(id)`id`",
    ]);
    expect(JSON.parse(await place.value("secret://exec/alone", {}, { exec }))[0]).toEqual([]);
  });

  it("gives the program the environment, which holds its own sign-in", async () => {
    const place = new Place();
    place.program("keeper", "print(env.KEEPER_SESSION)");
    expect(await place.value("secret://exec/alone", { KEEPER_SESSION: "s-1" }, { exec })).toBe("s-1");
  });

  it("says why it failed, and nothing that was printed", async () => {
    const place = new Place();
    place.program(
      "keeper",
      "print('half-a-secret'); process.stderr.write('\\n\\u001b[31mlocked: token=abcdef123456\\nmore'); process.exitCode = 4",
    );
    const error = await failureOf(place.value("secret://exec/alone", {}, { exec }));
    expect(error.message).toBe("secret://exec/alone was not given: keeper exited with 4: [31mlocked: token=[redacted]");
    place.program("keeper", "");
    expect((await failureOf(place.value("secret://exec/alone", {}, { exec }))).message).toContain(
      "is empty: keeper printed nothing",
    );
    place.program("keeper", "print('x'.repeat(200_000))");
    expect((await failureOf(place.value("secret://exec/alone", {}, { exec }))).message).toContain(
      "is larger than 64 KiB",
    );
    place.program("keeper", "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10_000)");
    expect((await failureOf(place.value("secret://exec/alone", {}, { exec }))).message).toContain("killed by SIGTERM");
  });

  it("names a command that is not configured, and a program that is not there", async () => {
    const place = new Place();
    expect(await failureOf(place.value("secret://exec/toString/x", {}, { exec }))).toMatchObject({
      message: 'secret://exec/toString/x names the command "toString", which the config does not have',
      hint: expect.stringContaining("secrets.exec.toString"),
    });
    expect((await failureOf(place.value("secret://exec/alone", {}, { exec }))).message).toContain(
      "needs the program keeper, which was not found",
    );
  });

  it("[guard-08a] ends the program when the connection is given up, though its own child holds the pipe", async () => {
    const place = new Place();
    const pidFile = join(place.dir, "pid");
    place.program(
      "keeper",
      `const { spawn } = require("node:child_process"), fs = require("node:fs");
       spawn(process.execPath, ["-e", "setTimeout(() => {}, 3000)"], { stdio: "inherit" });
       fs.writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); setTimeout(() => {}, 60_000)`,
    );
    const controller = new AbortController();
    const failed = failureOf(place.value("secret://exec/alone", {}, { exec }, { signal: controller.signal }));
    const pid = await eventually(() => Number(readIfThere(pidFile)) || undefined);
    controller.abort();
    expect((await failed).code).toBe("cancelled");
    await eventually(() => (isRunning(pid) ? undefined : true));
  });
});

describe("[guard-07a] secret://user", () => {
  it("gives each user their own value, and nobody another's", async () => {
    const place = new Place();
    const secrets = place.secrets();
    for (const user of ["ana", "Ana", "../ana", "ana@example.com", "a/../ana", "."]) {
      place.write(userSecretFile(place.home, user, "TOKEN").slice(place.dir.length + 1), `of ${user}\n`);
    }
    for (const user of ["ana", "Ana", "../ana", "ana@example.com", "a/../ana", "."]) {
      expect((await secrets.resolve("secret://user/TOKEN", { user })).value).toBe(`of ${user}`);
    }
    expect(userSecretFile(place.home, "ana", "TOKEN")).toBe(join(place.home, "secrets", "ana", "TOKEN"));
    expect(userSecretFile("/h", "..", "T")).toBe("/h/secrets/%2e./T");
    expect(userSecretFile("/h", "Ana", "T").toLowerCase()).not.toBe(userSecretFile("/h", "ana", "T").toLowerCase());
  });

  it("is refused where there is no user, and where the user has no such value", async () => {
    const place = new Place();
    place.write("toolcrib/secrets/TOKEN", "everybody's");
    expect(await failureOf(place.value("secret://user/TOKEN"))).toMatchObject({
      message: "secret://user/TOKEN belongs to a user, and this connection does not",
      hint: 'Set `isolation` of the server to "user".',
    });
    const bob = await failureOf(place.value("secret://user/TOKEN", {}, {}, { user: "bob" }));
    expect(bob.message).toBe('secret://user/TOKEN is not set for the user "bob"');
    await failureOf(place.value("secret://user/TOKEN", {}, {}, { user: "" }));
  });
});

function readIfThere(file: string): string {
  try {
    return statSync(file).size > 0 ? execFileSync("cat", [file], { encoding: "utf8" }) : "";
  } catch {
    return "";
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
