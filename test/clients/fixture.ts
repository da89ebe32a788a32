/** Files as people have them, one per client, and a made-up machine for their places. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse as parseToml } from "@decimalturn/toml-patch";
import JSON5 from "json5";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseYaml } from "yaml";
import type { AgentClient, ClientFile, ClientEnvironment } from "../../src/clients/agent-client.ts";
import { clientById } from "../../src/clients/clients.ts";

const FOLDER = fileURLToPath(new URL("../fixtures/clients/", import.meta.url));

export function fixtureText(id: string): string {
  const name = readdirSync(FOLDER).find((file) => file.replace(/\.\w+$/, "") === id);
  if (name === undefined) throw new Error(`there is no fixture of ${id}`);
  return readFileSync(FOLDER + name, "utf8");
}

/** Read with the plain parsers, so that these tests do not rest on the editors. */
export function fixtureDocument(client: AgentClient): unknown {
  const text = fixtureText(client.id);
  switch (client.format) {
    case "jsonc":
      return parseJsonc(text, [], { allowTrailingComma: true });
    case "json5":
      return JSON5.parse(text);
    case "yaml":
      return parseYaml(text);
    case "toml":
      return parseToml(text);
  }
}

export function client(id: string): AgentClient {
  const found = clientById(id);
  if (found === undefined) throw new Error(`there is no client ${id}`);
  return found;
}

export const LINUX: ClientEnvironment = {
  platform: "linux",
  home: "/home/ada",
  env: {},
  projectDir: "/home/ada/engine",
};
export const MAC: ClientEnvironment = {
  platform: "darwin",
  home: "/Users/ada",
  env: {},
  projectDir: "/Users/ada/engine",
};
export const WINDOWS: ClientEnvironment = {
  platform: "win32",
  home: "C:\\Users\\ada",
  env: { APPDATA: "C:\\Users\\ada\\AppData\\Roaming", LOCALAPPDATA: "C:\\Users\\ada\\AppData\\Local" },
  projectDir: "C:\\work\\engine",
};

/** The file of the scope that is written. */
export function fileOf(of: AgentClient, scope: "user" | "project" = "user", place = LINUX): ClientFile {
  const file = of.files(place).find((one) => one.scope === scope);
  if (file === undefined) throw new Error(`${of.id} has no file of the ${scope}`);
  return file;
}
