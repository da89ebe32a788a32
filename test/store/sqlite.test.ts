import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { storeBehaviour } from "./behaviour.ts";

const root = mkdtempSync(join(tmpdir(), "toolcrib-store-"));
afterAll(() => rmSync(root, { recursive: true }));

describe("the store on SQLite", () => {
  storeBehaviour(async () => {
    const home = mkdtempSync(join(root, "home-"));
    return { open: (options = {}) => openStore({ home, ...options }) };
  });
});
