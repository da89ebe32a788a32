/**
 * What V8 has compiled of the bundle is kept for the next start. Node's own cache of compiled code has what is compiled before a
 * file runs; functions that are first called later would be compiled again by each start, which is a sixth of its CPU time.
 */
// Every command loads it sooner or later; `crc32` would bring all streams of node:zlib along.
const { hash } = require("node:crypto");
const fs = require("node:fs");
const { basename, dirname, join } = require("node:path");
const { Script } = require("node:vm");

const HEAD = Buffer.from("(function(exports,require,module,__filename,__dirname){");
const END = Buffer.from("\n})");
const SUM_BYTES = 32;
const sumOf = (data) => hash("sha256", data, "buffer");
/** By then a hub has started, and has often served its first calls. V8 forgets later what has long not been called. */
const STARTED_MS = 20_000;
/** Files of versions that are gone. Whoever needs one that was removed writes it again. */
const OLD_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * @param {string} chunks The folder of the files that are kept, each with a hash of its content in its name.
 * @param {string} folder Where to.
 * @param {{ loadsTheSame: boolean }} options Whether each start loads the files that were loaded before.
 */
exports.compileOnce = function compileOnce(chunks, folder, { loadsTheSame }) {
  /** @type {Map<string, Script>} */
  const unkept = new Map();
  const sources = readSources(loadsTheSame ? filesOf(folder, chunks) : []);
  const others = require.extensions[".js"];
  require.extensions[".cjs"] = (module, file) => {
    if (dirname(file) !== chunks) return others(module, file);
    const kept = join(folder, basename(file));
    const source = sources.get(file) ?? readSources([file]).get(file);
    sources.delete(file);
    const cachedData = readKept(kept);
    const script = new Script(source, {
      filename: file,
      columnOffset: -HEAD.length,
      cachedData,
    });
    // Refused: of another version or build of V8.
    if (cachedData === undefined || script.cachedDataRejected) unkept.set(kept, script);
    if (cachedData !== undefined) release(cachedData);
    const load = script.runInThisContext();
    load.call(module.exports, module.exports, (id) => module.require(id), module, file, dirname(file));
  };
  const keep = () => {
    if (unkept.size === 0) return;
    try {
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
      for (const [file, script] of unkept) write(file, script.createCachedData());
      removeOld(folder);
    } catch {
      // A user without a place for it starts a little later.
    }
    unkept.clear();
  };
  process.on("exit", keep);
  setTimeout(keep, STARTED_MS).unref();
};

/** Of which something is kept. */
function filesOf(folder, chunks) {
  const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  return names.map((name) => join(chunks, name)).filter((file) => fs.existsSync(file));
}

/**
 * Parts of one text, by file. Node puts a text of 1 MB outside the heap of V8; smaller ones count as what survives its young
 * collections, after which it doubles the room for new objects. The build has made them ASCII. Put together as bytes, because V8
 * would copy a text of several parts.
 */
function readSources(files) {
  const sizes = files.map((file) => HEAD.length + fs.statSync(file).size + END.length);
  const bytes = allocate(sizes.reduce((sum, size) => sum + size, 0));
  let end = 0;
  for (const [index, file] of files.entries()) {
    HEAD.copy(bytes, end);
    end += sizes[index];
    readInto(bytes.subarray(end - sizes[index] + HEAD.length, end - END.length), fs.openSync(file));
    END.copy(bytes, end - END.length);
  }
  const text = bytes.latin1Slice();
  release(bytes);
  end = 0;
  return new Map(files.map((file, index) => [file, text.slice(end, (end += sizes[index]))]));
}

/** Undefined for what is not there, and for what is damaged: V8 would run it as it is. */
function readKept(file) {
  let bytes;
  try {
    const opened = fs.openSync(file);
    bytes = allocate(fs.fstatSync(opened).size);
    readInto(bytes, opened);
  } catch {
    return undefined;
  }
  const data = bytes.subarray(0, Math.max(0, bytes.length - SUM_BYTES));
  if (data.length > 0 && bytes.subarray(data.length).equals(sumOf(data))) return data;
  release(bytes);
  return undefined;
}

function readInto(bytes, opened) {
  try {
    if (fs.readSync(opened, bytes, 0, bytes.length, 0) < bytes.length) throw new Error("A file became shorter.");
  } finally {
    fs.closeSync(opened);
  }
}

/**
 * Pages of the system. Once malloc has given back a block of this size, it keeps megabytes of what is freed later, and takes large
 * tables from among them, where they are in memory as a whole.
 */
function allocate(size) {
  return Buffer.from(new ArrayBuffer(size, { maxByteLength: size }));
}

/** At once, not with the next collection. */
function release(bytes) {
  bytes.buffer.resize(0);
}

function write(file, data) {
  const unfinished = `${file}.${process.pid}`;
  try {
    fs.writeFileSync(unfinished, Buffer.concat([data, sumOf(data)]), { mode: 0o600 });
    fs.renameSync(unfinished, file);
  } catch (error) {
    // Where the disk is full, each start would leave another one.
    fs.rmSync(unfinished, { force: true });
    throw error;
  }
}

/** What it wrote, whole or not: someone may have put a link to another folder in the place of this one. */
const OWN_NAME = /\.cjs(?:\.\d+)?$/;

function removeOld(folder) {
  for (const name of fs.readdirSync(folder).filter((each) => OWN_NAME.test(each))) {
    const file = join(folder, name);
    if (fs.statSync(file).mtimeMs < Date.now() - OLD_MS) fs.rmSync(file);
  }
}
