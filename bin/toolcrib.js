#!/usr/bin/env node
// Plain JavaScript for Node 18 and up, so that an old Node gives a clear answer instead of a syntax error.
const NEEDED = [22, 14];
// The bridge of a stdio client is small: the rest is loaded when it is needed.
const name = process.argv[2] === "mcp" ? "bridge/main" : "main";
const built = new URL(`../dist/cli/${name}.js`, import.meta.url);
const source = new URL(`../src/cli/${name}.ts`, import.meta.url);

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isNewEnough = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
const entry = isNewEnough ? findEntry() : undefined;

if (entry !== undefined) {
  await import(entry.href);
} else {
  const { runElsewhere } = await import("./other-node.js");
  runElsewhere(
    isNewEnough
      ? "toolcrib: this checkout is not built, and this Node does not run TypeScript; run: npm run build"
      : `toolcrib needs Node ${NEEDED.join(".")} or newer; this is Node ${process.versions.node}. Get one at https://nodejs.org`,
  );
}

/** What this Node can run: a checkout that was not built runs from TypeScript, if this Node strips types by itself. */
function findEntry() {
  // Not imported: that would load more of Node than the whole start needs.
  const { existsSync } = process.getBuiltinModule("node:fs");
  if (existsSync(built) || !existsSync(source)) return built;
  return process.features.typescript ? source : undefined;
}
