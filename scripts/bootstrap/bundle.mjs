// @ts-check
/**
 * Bundles src/ into a folder: `node bundle.mjs <folder>`. Some 400 modules become a few files, so that there is less to find,
 * parse and keep. When it was introduced, loading `serve` took 0.22 s instead of 0.48, and an idle hub 78 MB instead of 110.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { parseSync, Visitor } from "rolldown/utils";
import { BUNDLED } from "./build.mjs";

/** @import { InputOptions, OutputChunk, OutputOptions, Plugin } from "rolldown" */

const SCHEMA_NODES = join("src", "config", "schema-nodes.ts");
const CONFIG_JSON_SCHEMA = join("src", "config", "config-json-schema.ts");
/** The schema of the config, with texts for its docs. */
const DESCRIBED = ["config", "server-spec", "tool-rules"].map((name) => join("src", "model", `${name}.ts`));
const WORD_TABLE = join("src", "guard", "word-table.ts");
/** What programs import, by the files that package.json names. */
const LIBRARY = {
  index: "src/index.ts",
  "agent/index": "src/agent/index.ts",
  "agent/adapters/index": "src/agent/adapters/index.ts",
  "testing/index": "src/testing/index.ts",
};
/** Imports packages and plugins for the files of the bundle: a file that is compiled from a cache cannot by itself, without a warning of Node. */
const IMPORT = "import.cjs";
const COMMANDS = { "cli/main": "src/cli/main.ts", "cli/bridge/remote-link": "src/cli/bridge/remote-link.ts" };
const PACKAGE_FOLDER = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/;

/** Names stay, for the stack traces of programs that use the library. @type {OutputOptions["minify"]} */
const MINIFY = { compress: true, mangle: false, codegen: { removeWhitespace: true } };

/** @param {{ root: string, out: string }} options */
export async function bundle({ root, out }) {
  const options = inputOptions(root);
  /** What each module imports. @type {Map<string, readonly string[]>} */
  const graph = new Map();
  const build = await rolldown({
    ...options,
    input: { ...LIBRARY, ...COMMANDS },
    plugins: [
      ...(await computedSchemas(options)),
      fewerSchemas(options),
      await computedWords(options),
      workerFiles(),
      keepImports(graph),
    ],
    preserveEntrySignatures: "allow-extension",
  });
  const generate = async (/** @type {OutputOptions["codeSplitting"]} */ codeSplitting) => {
    const { output } = await build.generate({
      format: "esm",
      // What has its content in its name may be compiled from a cache.
      entryFileNames: ({ name }) => `chunks/${name.replaceAll("/", "-")}-[hash].cjs`,
      chunkFileNames: "chunks/[name]-[hash].cjs",
      assetFileNames: "chunks/[name]-[hash][extname]",
      codeSplitting,
      minify: MINIFY,
    });
    for (const item of output) if (item.type === "asset") write(join(out, item.fileName), item.source);
    return output.filter((item) => item.type === "chunk");
  };
  const apart = await generate(true);
  const groups = [...startedTogether(apart, graph, root)].map(([name, ids]) => ({
    name,
    test: (/** @type {string} */ id) => ids.has(id),
  }));
  const chunks = await generate({ groups, includeDependenciesRecursively: false });
  await build.close();
  assertSameExports(apart, chunks);
  assertOrder(chunks);
  for (const { fileName, code } of chunks) write(join(out, fileName), toAscii(toCommonJs(code)));
  for (const { fileName, name, isEntry, exports } of chunks) {
    if (!isEntry) continue;
    const from = JSON.stringify(posix.relative(posix.dirname(name), fileName).replace(/^(?!\.)/, "./"));
    if (name in COMMANDS) write(join(out, `${name}.cjs`), `module.exports=require(${from});\n`);
    else if (name in LIBRARY)
      write(join(out, `${name}.js`), `import all from ${from};\nexport const { ${exports.join(", ")} } = all;\n`);
  }
  write(join(out, IMPORT), "module.exports=(name,options)=>import(name,options);\n");
  write(join(out, "THIRD-PARTY-LICENSES"), licences(chunks));
  await bundleClient(options, out);
  await bundleBridge(options, out);
}

/** Modules that were put together may be exported where they are entries too. @param {readonly OutputChunk[]} before @param {readonly OutputChunk[]} after */
function assertSameExports(before, after) {
  for (const { name, isEntry, exports } of before) {
    if (!isEntry || !(name in LIBRARY)) continue;
    const now = after.find((chunk) => chunk.isEntry && chunk.name === name)?.exports;
    if (now?.toSorted().join() !== exports.toSorted().join())
      throw new Error(`${name} has other exports than its source: ${now?.join(", ")}`);
  }
}

/** A file takes what it imports when it begins: it must be there by then. @param {readonly OutputChunk[]} chunks */
function assertOrder(chunks) {
  const byFile = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const done = new Set();
  const visit = (/** @type {string} */ file, /** @type {readonly string[]} */ above) => {
    if (above.includes(file)) throw new Error(`Files that import each other: ${[...above, file].join(", ")}`);
    const { name = "", isEntry = false, imports = [] } = byFile.get(file) ?? {};
    if (isEntry && name in COMMANDS && above.length > 0) throw new Error(`${above.at(-1)} would run ${name}`);
    if (!done.has(file)) for (const next of imports) visit(next, [...above, file]);
    done.add(file);
  };
  for (const file of byFile.keys()) visit(file, []);
}

/** The client for programs and pages is one file that needs no other, and nothing of Node. @param {InputOptions} options @param {string} out */
async function bundleClient(options, out) {
  const build = await rolldown({ ...options, input: { "api-client/index": "src/api-client/index.ts" } });
  const { output } = await build.generate({ format: "esm", codeSplitting: false, minify: MINIFY });
  await build.close();
  const [{ fileName, code, imports, dynamicImports }] = output;
  if (imports.length + dynamicImports.length > 0)
    throw new Error(`The client imports ${[...imports, ...dynamicImports].join(", ")}`);
  write(join(out, fileName), toAscii(code));
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
 * @param {readonly OutputChunk[]} chunks As the bundler splits them by itself.
 * @param {ReadonlyMap<string, readonly string[]>} graph @param {string} root
 * @returns {Map<string, Set<string>>} The modules of each new file, by its name.
 */
function startedTogether(chunks, graph, root) {
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
  for (const { fileName, isEntry, moduleIds: held } of chunks) {
    const all = needs.get(fileName);
    const moduleIds = isEntry ? importedFrom(held, graph) : held;
    if (all === undefined || moduleIds.length === 0) continue;
    const starts = all.length > 1 ? all.filter((start) => start !== LATER_START) : all;
    const name = starts.find((start) => SMALL_STARTS.includes(start)) ?? starts.join("-");
    groups.set(name, new Set([...(groups.get(name) ?? []), ...moduleIds]));
  }
  return groups;
}

/** Modules among these that others import, and what they need: whoever imports something must not run a whole program. @param {readonly string[]} held @param {ReadonlyMap<string, readonly string[]>} graph */
function importedFrom(held, graph) {
  const ids = new Set(held);
  const others = [...graph].filter(([id]) => !ids.has(id)).flatMap(([, imports]) => imports);
  const found = new Set(others.filter((id) => ids.has(id)));
  for (const id of found) for (const next of graph.get(id) ?? []) if (ids.has(next)) found.add(next);
  return [...found];
}

/** @param {Map<string, readonly string[]>} graph @returns {Plugin} */
function keepImports(graph) {
  return { name: "imports", moduleParsed: ({ id, importedIds }) => void graph.set(id, importedIds) };
}

/**
 * The bridge of a stdio client is one CommonJS file: Node starts it with less than a module, and it needs no other file, which an
 * upgrade of the package could take away while it runs.
 * @param {InputOptions} options @param {string} out
 */
async function bundleBridge(options, out) {
  const rest = new Map([
    ["../main.ts", "../main.cjs"],
    ["./remote-link.ts", "./remote-link.cjs"],
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
    minify: MINIFY,
  });
  await build.close();
  const [{ fileName, code }] = output;
  const required = code.replace(/\bimport\(`(\.[^`]+)`\)/g, "Promise.resolve().then(()=>require(`$1`))");
  write(join(out, fileName), toAscii(withLazyBuiltins(required)));
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
    // The oldest Node that package.json allows: newer syntax would keep all of it from being loaded there.
    transform: { target: "node22.14" },
    // Whoever starts a clone for the first time sees what a build prints; what a start loads is pinned by a test.
    checks: { ineffectiveDynamicImport: false },
    // The ES modules of a package, so that what is not used of it falls away.
    resolve: {
      mainFields: ["module", "main"],
      // Its build for Node looks up a variable of the environment for every token, which is a fifth of the time of parsing.
      alias: { yaml: join(root, "node_modules", "yaml", "browser", "dist", "index.js") },
    },
    // Tables of its formatter, which is not used: 1,200 texts.
    treeshake: { moduleSideEffects: [{ test: /[\\/]jsonc-parser[\\/]/, sideEffects: false }] },
    external: (id) => /^[\w@]/.test(id) && !BUNDLED.some((name) => id === name || id.startsWith(`${name}/`)),
  };
}

/**
 * Puts what `schemaNodes()` and `configJsonSchema()` return in the place of their modules. Only the second, which is printed, keeps
 * its descriptions: every start reads the first.
 * @param {InputOptions} options @returns {Promise<Plugin[]>}
 */
async function computedSchemas(options) {
  const { schemaNodes } = await importSource(options, SCHEMA_NODES);
  const { configJsonSchema } = await importSource(options, CONFIG_JSON_SCHEMA);
  const parsed = (/** @type {string} */ json) => `() => JSON.parse(${JSON.stringify(json)})`;
  const nodes = JSON.stringify(schemaNodes(), (key, value) =>
    key === "description" && typeof value === "string" ? undefined : value,
  );
  return [
    inPlaceOf(options, SCHEMA_NODES, `export const schemaNodes = ${parsed(nodes)}`),
    inPlaceOf(
      options,
      CONFIG_JSON_SCHEMA,
      `export const configJsonSchema = ${parsed(JSON.stringify(configJsonSchema()))}`,
    ),
  ];
}

/**
 * A description copies its schema, and the same schema is written in many places. Without either, a start makes half as many for the
 * config, of 1 KB each.
 * @param {InputOptions} options @returns {Plugin}
 */
function fewerSchemas(options) {
  const files = new Set(DESCRIBED.map((file) => resolve(String(options.cwd), file)));
  return {
    name: "fewer-schemas",
    transform: (code, id) => (files.has(id) ? withSharedSchemas(withoutDescriptions(code)) : null),
  };
}

/** @param {string} code A TypeScript module with zod schemas. */
export function withoutDescriptions(code) {
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = [];
  new Visitor({
    CallExpression({ callee, end }) {
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
      if (callee.property.name === "describe") edits.push({ start: callee.object.end, end, text: "" });
    },
  }).visit(parseSync("schemas.ts", code).program);
  return edited(code, edits);
}

/**
 * Makes schemas that are written the same once: `z.string().min(1)` becomes `(same1??=(same0??=z.string()).min(1))` wherever it is.
 * Only what is made when the module is loaded, of `z` and its own constants.
 * @param {string} code A TypeScript module with zod schemas.
 */
export function withSharedSchemas(code) {
  const { program } = parseSync("schemas.ts", code);
  const constants = new Set(["z"]);
  for (const statement of program.body) {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "VariableDeclaration") continue;
    for (const { id } of declared.declarations) if (id.type === "Identifier") constants.add(id.name);
  }
  /** @type {Map<string, { start: number, end: number }[]>} */
  const places = new Map();
  let functions = 0;
  const enter = () => void (functions += 1);
  const leave = () => void (functions -= 1);
  new Visitor({
    ArrowFunctionExpression: enter,
    "ArrowFunctionExpression:exit": leave,
    FunctionDeclaration: enter,
    "FunctionDeclaration:exit": leave,
    FunctionExpression: enter,
    "FunctionExpression:exit": leave,
    CallExpression({ start, end }) {
      const text = code.slice(start, end).replace(/\n\s*/g, "");
      const [root = ""] = /^\w+(?=\.)/.exec(text) ?? [];
      // A function that is written twice may see other variables.
      if (functions > 0 || !constants.has(root) || /=>|\bfunction\b/.test(text)) return;
      places.set(text, [...(places.get(text) ?? []), { start, end }]);
    },
  }).visit(program);
  const repeated = [...places.values()].filter((same) => same.length > 1);
  if (repeated.length === 0) return code;
  const edits = repeated
    .flatMap((same, index) => same.map(({ start, end }) => ({ start, end, text: `(same${index}??=` })))
    // Of two that begin at the same place, the longer one is around the other.
    .sort((one, other) => other.end - one.end)
    .flatMap(({ start, end, text }) => [
      { start, end: start, text },
      { start: end, end, text: ")" },
    ]);
  return `let ${repeated.map((_, index) => `same${index}`).join(",")};${edited(code, edits)}`;
}

/**
 * Puts what `wordTable()` returns in the place of its module, as a file of its own: in the code it would be in memory several times.
 * It is read with the module, so that an upgrade of the package takes nothing away from a hub that runs.
 * @param {InputOptions} options @returns {Promise<Plugin>}
 */
async function computedWords(options) {
  const { CONCEPT_NAMES, wordTable } = await importSource(options, WORD_TABLE);
  const source = new Uint8Array(wordTable().pack().buffer);
  return {
    name: `computed ${WORD_TABLE}`,
    load(id) {
      if (id !== resolve(String(options.cwd), WORD_TABLE)) return null;
      const reference = this.emitFile({ type: "asset", name: "words.bin", source });
      return `import { readFileSync } from "node:fs";
        import { WordTable } from "./automaton.ts";
        const { buffer, byteOffset, length } = readFileSync(new URL(import.meta.ROLLUP_FILE_URL_${reference}));
        export const CONCEPT_NAMES = ${JSON.stringify(CONCEPT_NAMES)};
        export const wordTable = () => WordTable.unpack(new Uint32Array(buffer, byteOffset, length / 4));`;
    },
  };
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

/** @param {string} file @param {string | Uint8Array} content */
function write(file, content) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/**
 * A CommonJS file can be compiled from what V8 keeps of it after it ran, functions included (bin/compiled-code.js), and is loaded
 * in one go. Node gives away the builtins it requires as they are, while `import … from "node:http"` reads every property for the
 * module's namespace, and with them come the parts that Node loads on demand: all of fetch, for one, 12 MB and 30 ms.
 * Names that are imported become constants, which cost no look-up where they are used.
 * @param {string} code An ES module of the bundler.
 */
export function toCommonJs(code) {
  const { program } = parseSync("chunk.js", code);
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = [];
  /** @type {string[]} */
  const exported = [];
  for (const statement of program.body) {
    if (statement.type === "ImportDeclaration") edits.push({ ...statement, text: requireStatement(statement) });
    else if (statement.type === "ExportNamedDeclaration" && statement.declaration === null) {
      const from = statement.source && `require(${JSON.stringify(statement.source.value)}).`;
      for (const { local, exported: name } of statement.specifiers)
        exported.push(`exports.${nameOf(name)}=${from ?? ""}${nameOf(local)};`);
      edits.push({ ...statement, text: "" });
    } else if (statement.type.startsWith("Export")) throw new Error(`Not expected of the bundler: ${statement.type}`);
  }
  assertNoVariables(program.body, exported);
  new Visitor({
    ImportExpression({ start, end, source }) {
      const [quasi] = source.type === "TemplateLiteral" ? source.quasis : [];
      const file = source.type === "Literal" ? String(source.value) : (quasi?.value.cooked ?? "");
      if (/^(?:\.|node:)/.test(file))
        edits.push({ start, end, text: `Promise.resolve().then(()=>require(${JSON.stringify(file)}))` });
      else edits.push({ start, end: start + "import".length, text: `require("../${IMPORT}")` });
    },
    MemberExpression({ start, end, object, property }) {
      if (object.type !== "MetaProperty" || property.type !== "Identifier") return;
      const text = { url: 'require("node:url").pathToFileURL(__filename).href', dirname: "__dirname" }[property.name];
      if (text === undefined) throw new Error(`import.meta.${property.name} has no counterpart here.`);
      edits.push({ start, end, text });
    },
  }).visit(program);
  return `"use strict";${edited(code, edits)};${exported.join("")}`;
}

/** @param {string} code @param {{ start: number, end: number, text: string }[]} edits */
function edited(code, edits) {
  let result = "";
  let done = 0;
  for (const { start, end, text } of edits.sort((one, other) => one.start - other.start)) {
    result += code.slice(done, start) + text;
    done = end;
  }
  return result + code.slice(done);
}

/** Who imports a variable would not see that it changes. @param {import("rolldown/utils").ESTree.Program["body"]} statements @param {readonly string[]} exported */
function assertNoVariables(statements, exported) {
  const names = new Set(exported.map((each) => each.slice(each.indexOf("=") + 1, -1)));
  for (const statement of statements) {
    // The bundler's own are `var`, and have their value from the beginning.
    if (statement.type !== "VariableDeclaration" || statement.kind !== "let") continue;
    for (const { id } of statement.declarations)
      if (id.type === "Identifier" && names.has(id.name)) throw new Error(`A variable is exported: ${id.name}`);
  }
}

/** @param {import("rolldown/utils").ESTree.ImportDeclaration} statement */
function requireStatement({ source, specifiers }) {
  const required = `require(${JSON.stringify(source.value)})`;
  const names = [];
  let wholes = "";
  for (const specifier of specifiers) {
    const { name } = specifier.local;
    // As Node does it: the default of a CommonJS package is all of it.
    if (specifier.type !== "ImportSpecifier") wholes += `const ${name}=${required};`;
    else names.push(nameOf(specifier.imported) === name ? name : `${nameOf(specifier.imported)}:${name}`);
  }
  if (specifiers.length === 0) return `${required};`;
  return names.length === 0 ? wholes : `${wholes}const{${names.join(",")}}=${required};`;
}

/** @param {import("rolldown/utils").ESTree.ModuleExportName} name */
function nameOf(name) {
  if (name.type === "Literal") throw new Error(`Not expected of the bundler: a name in quotes, ${name.value}`);
  return name.name;
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
