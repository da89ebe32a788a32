// @ts-check
/** Makes dist/web from web/. Does nothing when the sources are the ones that the page there was made from. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { hashFiles } from "./hash-files.mjs";
import { runNode } from "./run.mjs";

const VITE = join("node_modules", "vite", "bin", "vite.js");
const CONFIG = join("web", "vite.config.ts");
/** What of src/ the page is built from; types alone change nothing in it. */
const SHARED = [join("src", "api-client"), join("src", "contract")];
const PACKAGES = [
  "vite",
  "@vitejs/plugin-react",
  "@tailwindcss/vite",
  "tailwindcss",
  "react",
  "react-dom",
  "radix-ui",
  "marked",
];
const TANSTACK = ["react-query", "react-router", "react-virtual"].map((name) => `@tanstack/${name}`);

/** Beside the page, so that the two are never apart. */
const STAMP = "build-stamp";

/** @param {string} root */
function webSourceHash(root) {
  const sources = ["web", ...SHARED].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((name) => join(folder, name))
      .filter((file) => !file.endsWith(".md") && statSync(join(root, file)).isFile()),
  );
  const versions = [...PACKAGES, ...TANSTACK].map((name) => join("node_modules", name, "package.json"));
  return hashFiles(root, [...sources.sort(), ...versions]);
}

/** @param {string} root */
export function isWebBuilt(root) {
  return stampOf(join(root, "dist", "web")) === webSourceHash(root);
}

/** @param {string} root */
export function canBuildWeb(root) {
  return existsSync(join(root, VITE)) && existsSync(join(root, CONFIG));
}

/**
 * The page is made in .dev/web and copied from there: dist/ is replaced as a whole by each build of src/.
 *
 * @param {{ root: string, nodePath: string, say: (line: string) => void, out?: string }} options `out`: the folder of dist, made or not
 * @returns {Promise<number>} an exit code
 */
export async function buildWeb({ root, nodePath, say, out = join(root, "dist") }) {
  const hash = webSourceHash(root);
  const kept = join(root, ".dev", "web");
  if (stampOf(kept) !== hash) {
    say("Building the page from web");
    const fresh = join(root, ".dev", `web-${process.pid}`);
    rmSync(fresh, { recursive: true, force: true });
    const given = ["build", "--config", CONFIG, "--outDir", fresh, "--emptyOutDir", "--logLevel", "warn"];
    // A test that starts the program hands NODE_ENV=test on, and React would come along with all that it has for developers.
    const code = await runNode(nodePath, [VITE, ...given], { cwd: root, env: { NODE_ENV: "production" } });
    if (code !== 0) {
      rmSync(fresh, { recursive: true, force: true });
      return code;
    }
    writeFileSync(join(fresh, STAMP), hash);
    rmSync(kept, { recursive: true, force: true });
    renameSync(fresh, kept);
  }
  const page = join(out, "web");
  if (stampOf(page) === hash) return 0;
  rmSync(page, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  cpSync(kept, page, { recursive: true });
  return 0;
}

/** @param {string} folder */
function stampOf(folder) {
  try {
    return readFileSync(join(folder, STAMP), "utf8");
  } catch {
    return undefined;
  }
}
