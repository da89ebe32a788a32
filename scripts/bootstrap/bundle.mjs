// @ts-check
/**
 * Bundles src/ into a folder: `node bundle.mjs <folder>`. Some 400 modules become a few files, so that there is less to find,
 * parse and keep. When it was introduced, loading `serve` took 0.22 s instead of 0.48, and an idle hub 78 MB instead of 110.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { rolldown } from "rolldown";
import { parseSync } from "rolldown/utils";
import { BUNDLED } from "./build.mjs";

/** @import { InputOptions, OutputChunk, OutputOptions, Plugin } from "rolldown" */

const SCHEMA_NODES = join("src", "config", "schema-nodes.ts");
const WORD_TABLE = join("src", "guard", "word-table.ts");
const PACKAGE_FOLDER = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/;

/** @param {{ root: string, out: string }} options */
export async function bundle({ root, out }) {
  const options = inputOptions(root);
  const build = await rolldown({
    ...options,
    input: {
      index: "src/index.ts",
      "cli/main": "src/cli/main.ts",
      "cli/bridge/remote-link": "src/cli/bridge/remote-link.ts",
      "agent/index": "src/agent/index.ts",
      "agent/adapters/index": "src/agent/adapters/index.ts",
      "api-client/index": "src/api-client/index.ts",
      "testing/index": "src/testing/index.ts",
    },
    plugins: [await computedSchema(options), await computedWords(options), workerFiles()],
    preserveEntrySignatures: "allow-extension",
  });
  const generate = async (/** @type {OutputOptions["codeSplitting"]} */ codeSplitting) => {
    const { output } = await build.generate({
      format: "esm",
      chunkFileNames: "chunks/[name]-[hash].js",
      codeSplitting,
      // Names stay, for the stack traces of programs that use the library.
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    });
    return output.filter((item) => item.type === "chunk");
  };
  const apart = await generate(true);
  const groups = [...startedTogether(apart, root)].map(([name, ids]) => ({
    name,
    test: (/** @type {string} */ id) => ids.has(id),
  }));
  const chunks = await generate({ groups, includeDependenciesRecursively: false });
  await build.close();
  assertSameExports(apart, chunks);
  for (const { fileName, code } of chunks) write(join(out, fileName), toAscii(withoutBuiltinNamespaces(code)));
  write(join(out, "THIRD-PARTY-LICENSES"), licences(chunks));
  await bundleBridge(options, out);
}

/** Modules that were put together may be exported where they are entries too. @param {readonly OutputChunk[]} before @param {readonly OutputChunk[]} after */
function assertSameExports(before, after) {
  for (const { fileName, exports } of before) {
    if (fileName.startsWith("chunks/")) continue;
    const now = after.find((chunk) => chunk.fileName === fileName)?.exports;
    if (now?.toSorted().join() !== exports.toSorted().join())
      throw new Error(`${fileName} has other exports than its source: ${now?.join(", ")}`);
  }
}

/** What opens the store, besides what it imports. */
const STORE = ["store/open-store", "store/sqlite-engine", "store/migrations", "store/database-store"];
/** Programs, threads and steps of a start, each with the modules that it begins with. @type {Readonly<Record<string, readonly string[]>>} */
const STARTS = {
  base: ["cli/main"],
  attach: ["config/find-config", "files/path-safety", "cli/hub/run-at-hub"],
  audit: ["hub/audit/audit-worker", ...STORE],
  scan: ["guard/scan-worker"],
  config: ["cli/command-config"],
  hub: ["hub/create/create-hub"],
  serve: ["cli/serve/serve-command", ...STORE],
  doors: ["cli/serve/http-doors"],
};
/** Begins when all that it shares with others is loaded. */
const LATER_START = "doors";
/** So small that all of it may be loaded where some of it is needed. */
const SMALL_STARTS = ["base", "attach"];

/**
 * Every file costs Node about half a millisecond, whatever its size, so modules that are needed by the same starts become one
 * file. What they import is needed by the same starts at least, so that no two of these files import each other.
 * @param {readonly OutputChunk[]} chunks As the bundler splits them by itself. @param {string} root
 * @returns {Map<string, Set<string>>} The modules of each new file, by its name.
 */
function startedTogether(chunks, root) {
  const byFile = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  /** @type {Map<string, string[]>} */
  const needs = new Map();
  for (const [start, modules] of Object.entries(STARTS)) {
    const ids = new Set(modules.map((module) => join(root, "src", `${module}.ts`)));
    const begin = chunks.filter(({ moduleIds }) => moduleIds.some((id) => ids.has(id)));
    const files = new Set(begin.map(({ fileName }) => fileName));
    for (const file of files) for (const next of byFile.get(file)?.imports ?? []) if (byFile.has(next)) files.add(next);
    for (const file of files) needs.set(file, [...(needs.get(file) ?? []), start]);
  }
  /** @type {Map<string, Set<string>>} */
  const groups = new Map();
  for (const { fileName, isEntry, moduleIds } of chunks) {
    const all = needs.get(fileName);
    if (all === undefined || isEntry) continue;
    const starts = all.length > 1 ? all.filter((start) => start !== LATER_START) : all;
    const name = starts.find((start) => SMALL_STARTS.includes(start)) ?? starts.join("-");
    groups.set(name, new Set([...(groups.get(name) ?? []), ...moduleIds]));
  }
  return groups;
}

/**
 * The bridge of a stdio client is one CommonJS file: Node starts it with less than a module, and it needs no other file, which an
 * upgrade of the package could take away while it runs.
 * @param {InputOptions} options @param {string} out
 */
async function bundleBridge(options, out) {
  const rest = new Map([
    ["../main.ts", "../main.js"],
    ["./remote-link.ts", "./remote-link.js"],
  ]);
  const build = await rolldown({
    ...options,
    input: { "cli/bridge/main": "src/cli/bridge/main.ts" },
    plugins: [
      {
        name: "rest",
        resolveId: (id) => (rest.has(id) ? { id: String(rest.get(id)), external: true } : null),
      },
    ],
  });
  const { output } = await build.generate({
    format: "cjs",
    entryFileNames: "[name].cjs",
    codeSplitting: false,
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
  });
  await build.close();
  const [{ fileName, code }] = output;
  write(join(out, fileName), toAscii(withLazyBuiltins(code)));
}

/**
 * Loads each builtin where it is first used: child processes and cryptography are 3 MB, and only a bridge that starts a hub
 * needs them.
 * @param {string} code Of a CommonJS file.
 */
export function withLazyBuiltins(code) {
  /** @type {Map<string, string>} */
  const names = new Map();
  const declarations = /\b(?:let|const|var) (\w+=require\("node:[\w/]+"\)(?:,\w+=require\("node:[\w/]+"\))*);/g;
  const rest = code.replace(declarations, (_, list) => {
    for (const [, name, id] of list.matchAll(/(\w+)=require\("([^"]+)"\)/g)) names.set(name, id);
    return "";
  });
  if (names.size === 0) throw new Error("The bridge's builtins are not where they were expected.");
  return [...names].reduce(
    (text, [name, id]) => text.replaceAll(new RegExp(`\\b${name}\\.`, "g"), `require(${JSON.stringify(id)}).`),
    rest,
  );
}

/** @param {string} root @returns {InputOptions} */
function inputOptions(root) {
  return {
    cwd: root,
    platform: "node",
    // The ES modules of a package, so that what is not used of it falls away.
    resolve: {
      mainFields: ["module", "main"],
      // Its build for Node looks up a variable of the environment for every token, which is a fifth of the time of parsing.
      alias: { yaml: join(root, "node_modules", "yaml", "browser", "dist", "index.js") },
    },
    external: (id) => /^[\w@]/.test(id) && !BUNDLED.some((name) => id === name || id.startsWith(`${name}/`)),
  };
}

/** Puts what `schemaNodes()` returns in the place of its module. @param {InputOptions} options @returns {Promise<Plugin>} */
async function computedSchema(options) {
  const { schemaNodes } = await importSource(options, SCHEMA_NODES);
  const json = JSON.stringify(JSON.stringify(schemaNodes()));
  return inPlaceOf(options, SCHEMA_NODES, `export const schemaNodes = () => JSON.parse(${json})`);
}

/** Puts what `wordTable()` returns in the place of its module. @param {InputOptions} options @returns {Promise<Plugin>} */
async function computedWords(options) {
  const { CONCEPT_NAMES, wordTable } = await importSource(options, WORD_TABLE);
  const { buffer } = wordTable().pack();
  // A larger window would take memory wherever it is unpacked, and saves nothing.
  const params = { [constants.BROTLI_PARAM_LGWIN]: 18 };
  const packed = brotliCompressSync(buffer, { params }).toString("base64");
  return inPlaceOf(
    options,
    WORD_TABLE,
    `import { brotliDecompressSync } from "node:zlib";
     import { WordTable } from "./automaton.ts";
     export const CONCEPT_NAMES = ${JSON.stringify(CONCEPT_NAMES)};
     export function wordTable() {
       const { buffer, byteOffset, length } = brotliDecompressSync(Buffer.from("${packed}", "base64"));
       return WordTable.unpack(new Uint16Array(buffer, byteOffset, length / 2));
     }`,
  );
}

/** @param {InputOptions} options @param {string} file @returns {Promise<any>} Its exports. */
async function importSource(options, file) {
  const build = await rolldown({ ...options, input: file });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
}

/** @param {InputOptions} options @param {string} file @param {string} code @returns {Plugin} */
function inPlaceOf(options, file, code) {
  const replaced = resolve(String(options.cwd), file);
  return { name: `computed ${file}`, load: (id) => (id === replaced ? code : null) };
}

/** A thread is started from a file of its own: `new Worker(new URL("./x.ts", import.meta.url), …)`. @returns {Plugin} */
function workerFiles() {
  return {
    name: "worker-files",
    transform(code, id) {
      if (!code.includes("new Worker(")) return null;
      return code.replace(/new URL\("(\.\/[\w-]+\.ts)", import\.meta\.url\)/g, (_, file) => {
        const reference = this.emitFile({ type: "chunk", id: resolve(dirname(id), file) });
        return `new URL(import.meta.ROLLUP_FILE_URL_${reference})`;
      });
    },
  };
}

/** @param {string} file @param {string} content */
function write(file, content) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/**
 * `import … from "node:http"` reads every property of it for the module's namespace, and with them come the parts that Node
 * loads on demand: all of fetch, for one, 12 MB and 30 ms. A builtin that is asked for directly comes without them.
 * @param {string} code
 */
export function withoutBuiltinNamespaces(code) {
  let result = "";
  let done = 0;
  for (const statement of parseSync("chunk.js", code).program.body) {
    if (statement.type !== "ImportDeclaration" || !statement.source.value.startsWith("node:")) continue;
    const builtin = `globalThis.process.getBuiltinModule(${JSON.stringify(statement.source.value)})`;
    const names = [];
    const wholes = [];
    for (const { type, local, ...specifier } of statement.specifiers) {
      if (type !== "ImportSpecifier") wholes.push(`const ${local.name}=${builtin};`);
      else if ("imported" in specifier && "name" in specifier.imported)
        names.push(specifier.imported.name === local.name ? local.name : `${specifier.imported.name}:${local.name}`);
    }
    result += code.slice(done, statement.start) + wholes.join("");
    if (names.length > 0) result += `const{${names.join(",")}}=${builtin};`;
    done = statement.end;
  }
  return result + code.slice(done);
}

/**
 * One character outside Latin-1 makes V8 keep a whole file with two bytes per character.
 * @param {string} code
 */
export function toAscii(code) {
  // After a backslash of its own the escape would mean something else.
  const escaped = /(?<!\\)(?:\\\\)*\\[^\0-\x7f]/.exec(code);
  if (escaped !== null) throw new Error(`A backslash in front of a character that is not ASCII: ${escaped[0]}`);
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The notices of the packages that are in the bundle. @param {readonly OutputChunk[]} chunks */
function licences(chunks) {
  const modules = chunks.flatMap((chunk) => Object.keys(chunk.modules));
  const folders = new Set(modules.flatMap((id) => PACKAGE_FOLDER.exec(id) ?? []));
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      if (file === undefined) throw new Error(`${name} is bundled and has no licence file`);
      return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

const self = fileURLToPath(import.meta.url);
if (process.argv[1] !== undefined && resolve(process.argv[1]) === self) {
  const out = process.argv[2];
  if (out === undefined) throw new Error("usage: bundle.mjs <folder>");
  await bundle({ root: dirname(dirname(dirname(self))), out }).catch((error) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
