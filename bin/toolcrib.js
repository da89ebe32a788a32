#!/usr/bin/env node
// Plain CommonJS for Node 18 and up, so that an old Node gives a clear answer instead of a syntax error, and a bridge starts
// without Node's loader of modules.
const { existsSync, lstatSync } = require("node:fs");
const { dirname, join, resolve } = require("node:path");

const NEEDED = [22, 14];
const root = join(__dirname, "..");
// The bridge of a stdio client is small: the rest is loaded when it is needed.
const isBridge = process.argv[2] === "mcp";
const built = join(root, "dist", "cli", isBridge ? join("bridge", "main.cjs") : "main.js");
const source = join(root, "src", "cli", isBridge ? join("bridge", "main.ts") : "main.ts");

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isNewEnough = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
const entry = isNewEnough ? findEntry() : undefined;

if (entry === undefined) {
  const { runElsewhere } = require("./other-node.js");
  runElsewhere(
    isNewEnough
      ? "toolcrib: this checkout is not built, and this Node does not run TypeScript; run: npm run build"
      : `toolcrib needs Node ${NEEDED.join(".")} or newer; this is Node ${process.versions.node}. Get one at https://nodejs.org`,
  );
} else if (entry.endsWith(".cjs")) require(entry);
else {
  keepCompiledCode();
  void import(require("node:url").pathToFileURL(entry).href);
}

/** What this Node can run: a checkout that was not built runs from TypeScript, if this Node strips types by itself. */
function findEntry() {
  if (existsSync(built) || !existsSync(source)) return built;
  return process.features.typescript ? source : undefined;
}

/** Puts what V8 compiles where the next start finds it: in the user's cache folder, because code is run from it. */
function keepCompiledCode() {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  try {
    const cache = XDG_CACHE_HOME || LOCALAPPDATA || join(require("node:os").homedir(), ".cache");
    const folder = resolve(cache, "toolcrib", "code");
    if (process.geteuid?.() !== 0 || isOfRoot(folder)) require("node:module").enableCompileCache(folder);
  } catch {
    // A user without a home starts a little later.
  }
}

/** Whether no other user can put code there: sudo may keep the home of the user who runs it. */
function isOfRoot(folder) {
  const above = dirname(folder);
  const owner = lstatSync(folder, { throwIfNoEntry: false })?.uid ?? 0;
  return owner === 0 && (above === folder || isOfRoot(above));
}
