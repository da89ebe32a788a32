/** What a hub that is not trusted can do to the machine of a command that runs there. */
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { VERSION_HEADER } from "../../../src/model/bridge.ts";
import { VERSION } from "../../../src/model/version.ts";
import { type Finished, workspace } from "../run-cli.ts";

let server: Server | undefined;
afterEach(() => void server?.close());

/** The address of a hub that gives every command this answer. */
async function hubThatSays(frames: readonly object[], version = VERSION): Promise<string> {
  server = createServer((request, response) => {
    request.resume().once("end", () => {
      response.writeHead(200, { "content-type": "application/x-ndjson", [VERSION_HEADER]: version });
      response.end(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const part = (name: string, mimeType = "image/png"): object => ({
  bytes: Buffer.from("bytes").toString("base64"),
  mimeType,
  name,
});

describe("[counter-12a] a hub that names the files of --out", () => {
  const place = async (...parts: object[]): Promise<{ finished: Finished; files: string[] }> => {
    const here = workspace();
    mkdirSync(join(here.dir, "folder"));
    const url = await hubThatSays([{ save: parts }, { exit: 0 }]);
    const finished = await here.runHere([
      "call",
      "x",
      "--out",
      "folder/",
      "--force",
      "--hub",
      url,
      "--token",
      "secret",
    ]);
    expect(existsSync(join(here.dir, ".config"))).toBe(false);
    return { finished, files: readdirSync(join(here.dir, "folder")) };
  };

  it.each(["../.config/evil", "/tmp/evil", "..", "a/b", "a\\b", ".bashrc", "", "x".repeat(81), "a\n"])(
    "is refused with the name %j",
    async (name) => {
      const { finished, files } = await place(part("fine"), part(name));
      expect(finished).toMatchObject({ code: 4, stderr: expect.stringContaining("cannot be read") });
      expect(files).toEqual([]);
    },
  );

  it("gives them a name in the folder, with a short extension", async () => {
    const { finished, files } = await place(part("logo"), part("other", "constructor"), part("third", "a/../../b"));
    expect(finished).toMatchObject({ code: 0 });
    expect(files.toSorted()).toEqual(["logo-1.png", "other-2.bin", "third-3.bin"]);
  });
});

describe("[counter-12b] the text of a hub elsewhere", () => {
  it("drives no terminal, and keeps the styles and the progress line of a command", async () => {
    const styled = "\u001b[31merror:\u001b[39m";
    const url = await hubThatSays(
      [
        { out: `\u001b]0;title\u0007\u001b[2Jtext\u009b2J\t${styled}\n` },
        { err: `\r\u001b[K50 %\u001b[8mhidden\u001b[1A\r\n${styled}` },
        // In pieces.
        { out: "\u001b" },
        { out: "[2J" },
        { exit: 0 },
      ],
      "9\u009b2J",
    );
    const { code, stdout, stderr } = await workspace().runHere(["list", "--hub", url, "--token", "secret"]);
    expect(code).toBe(0);
    expect(stdout).toBe(`\\u{001B}]0;title\\u{0007}\\u{001B}[2Jtext\\u{009B}2J\t${styled}\n\\u{001B}[2J`);
    expect(stderr).toContain(`\r\u001b[K50 %\\u{001B}[8mhidden\\u{001B}[1A\n${styled}`);
    expect(stderr).toContain("The hub is version 9\\u{009B}2J");
  });
});

describe("[counter-12d] a command beside a hub that was started with --config", () => {
  const besideHub = (record: object = {}): { here: ReturnType<typeof workspace>; config: string } => {
    const here = workspace();
    const config = here.write("demo.json", "{}");
    mkdirSync(join(here.home, "hubs"));
    const hub = { url: "http://127.0.0.1:9", pid: process.pid, token: "secret", version: VERSION, config: [config] };
    writeFileSync(join(here.home, "hubs", `${process.pid}.json`), JSON.stringify({ ...hub, ...record }));
    return { here, config };
  };

  it("names that config where there is no other", async () => {
    const { here, config } = besideHub();
    const { code, stderr } = await here.runHere(["list"]);
    expect(code).toBe(0);
    expect(stderr.split("\n").slice(0, 2)).toEqual([
      `note: There is no config here, but a hub with another one is running. To use it: --config ${config}`,
      expect.stringContaining("Nothing to list"),
    ]);
  });

  it("says nothing where the command has a config, or where only an editor's agent runs", async () => {
    const { here } = besideHub();
    here.configure({});
    const configured = await here.runHere(["list", "--config", here.configFile]);
    expect(configured).toMatchObject({ code: 0, stderr: expect.not.stringContaining("note:") });
    const editor = besideHub({ editor: true });
    expect((await editor.here.runHere(["list"])).stderr).not.toContain("note:");
  });
});
