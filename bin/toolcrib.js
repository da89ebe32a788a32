#!/usr/bin/env node
// Plain CommonJS for Node 18 and up, so that an old Node gives a clear answer instead of a syntax error, and a bridge starts
// without Node's loader of modules.
const { existsSync, lstatSync, mkdirSync, realpathSync } = require("node:fs");
const { dirname, isAbsolute, join } = require("node:path");

const NEEDED = [22, 14];
const root = join(__dirname, "..");
// The bridge of a stdio client is small: the rest is loaded when it is needed.
const isBridge = process.argv[2] === "mcp";
const built = join(root, "dist", "cli", isBridge ? join("bridge", "main.cjs") : "main.cjs");
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
} else {
  if (!isBridge) keepCompiledCode();
  if (entry.endsWith(".cjs")) require(entry);
  else void import(require("node:url").pathToFileURL(entry).href);
}

/** What this Node can run: a checkout that was not built runs from TypeScript, if this Node strips types by itself. */
function findEntry() {
  if (existsSync(built) || !existsSync(source)) return built;
  return process.features.typescript ? source : undefined;
}

/** Puts what V8 compiles where the next start finds it: in the user's cache folder, because code is run from it. */
function keepCompiledCode() {
  const { XDG_CACHE_HOME, LOCALAPPDATA, NODE_DISABLE_COMPILE_CACHE } = process.env;
  if (NODE_DISABLE_COMPILE_CACHE) return;
  try {
    const cache = XDG_CACHE_HOME || LOCALAPPDATA || join(require("node:os").homedir(), ".cache");
    const wanted = join(cache, "toolcrib", "code");
    // With an empty HOME it would be a folder of the project that a command is run in.
    if (!isAbsolute(wanted) || !isSafe(wanted)) return;
    mkdirSync(wanted, { recursive: true, mode: 0o700 });
    // Again: someone else may have made it meanwhile.
    const folder = realpathSync(wanted);
    if (!isSafe(folder)) return;
    require("node:module").enableCompileCache(folder);
    // A hub and a command call other functions of the same files.
    const kind = process.argv[2] === "serve" ? "serve" : "commands";
    const kept = join(folder, `${process.version}-${process.arch}-${kind}`);
    const { compileOnce } = require("./compiled-code.js");
    compileOnce(join(root, "dist", "chunks"), kept, { loadsTheSame: kind === "serve" });
  } catch {
    // A user without a home starts a little later.
  }
}

/**
 * Whether no other user can put code there, as far as the way to it exists: each folder belongs to the user or to root, and is
 * written to by no one else. For root the user's own do not count: sudo may keep the home of the user who runs it.
 */
function isSafe(folder, isOnTheWay = false) {
  const user = process.geteuid?.();
  if (user === undefined) return true;
  const above = dirname(folder);
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found !== undefined) {
    const { uid, gid, mode } = found;
    if (uid !== 0 && uid !== user) return false;
    // A group with the user's number is the user's alone.
    const isOpen = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid);
    // In a folder such as /tmp others cannot replace what is ours; they can add to it.
    const keepsOurs = isOnTheWay && (mode & 0o1000) !== 0;
    if (isOpen && !keepsOurs && !found.isSymbolicLink()) return false;
  }
  return above === folder || isSafe(above, true);
}
