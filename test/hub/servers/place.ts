/** A home with a config file of the user's, and hubs on it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { type ErrorObject, ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { misbehaving } from "../../support/servers.ts";

/** A server that is sound. */
export const sound = (): JsonObject => ({ ...misbehaving("ok") });

export class Place {
  readonly home = mkdtempSync(join(tmpdir(), "toolcrib-servers-"));
  readonly file = join(this.home, "toolcrib.json");
  readonly warnings: string[] = [];

  constructor(config: ConfigInput = {}) {
    onTestFinished(() => rmSync(this.home, { recursive: true, force: true }));
    this.write("toolcrib.json", config);
  }

  write(name: string, value: unknown): string {
    const file = join(this.home, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
    return file;
  }

  async hub(options: HubOptions = {}): Promise<Hub> {
    const hub = await createHub(this.file, { home: this.home, ...options });
    onTestFinished(() => hub.close());
    return hub;
  }
}

export async function refused(promise: Promise<unknown>): Promise<ErrorObject> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ToolcribError) return error.toObject();
  return expect.fail(`not refused: ${String(error)}`);
}

export async function textOf(hub: Hub, name: string, args: JsonObject = {}): Promise<string> {
  const outcome = await hub.call({ name, arguments: args });
  const [first] = outcome.result?.content ?? [];
  return typeof first?.["text"] === "string" ? first["text"] : `no text: ${JSON.stringify(outcome)}`;
}

export function ids(hub: Hub): string[] {
  return hub.servers.list().map(({ id }) => id);
}
