import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { type Catalog, type Language, LANGUAGES } from "./src/messages/messages.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** A page of docs/ with `?headings` is its title and headings alone, so that they can be found without loading the pages. */
function headingsOfDocs(): Plugin {
  const textOf = (markdown: string): string => markdown.replaceAll(/[`*]|<[^>]*>|\[|\]\([^)]*\)/g, "").trim();
  return {
    name: "headings-of-docs",
    load(id) {
      const [file = "", query] = id.split("?");
      if (query !== "headings") return undefined;
      const text = readFileSync(file, "utf8").replaceAll(/^```[^]*?^```/gm, "");
      const headings = [...text.matchAll(/^#{1,3} (.+)$/gm)].map(([, heading = ""]) => textOf(heading));
      return `export default ${JSON.stringify(headings)};`;
    },
  };
}

/**
 * Only the page's language is loaded: a file of messages becomes one part for each language, in which a message is its text.
 * While developing they stay as they are.
 */
function oneLanguage(): Plugin {
  const folder = here("./src/messages/");
  const shortName = (file: string): string => file.slice(folder.length, -".ts".length);
  const catalogOf = async (file: string): Promise<readonly [string, Catalog]> => {
    const [found] = Object.entries((await import(file)) as Readonly<Record<string, Catalog>>);
    if (found === undefined) throw new Error(`${file} exports no catalog.`);
    return found;
  };
  return {
    name: "one-language",
    apply: "build",
    enforce: "pre",
    resolveId: (id) => (id.startsWith("messages:") ? id : undefined),
    async load(id) {
      const [, name, language] = /^messages:([\w-]+)-(\w+)$/.exec(id) ?? [];
      if (name !== undefined) {
        const [, catalog] = await catalogOf(`${folder}${name}.ts`);
        const texts = Object.entries(catalog).map(([key, message]) => [key, message[language as Language]]);
        return `export default ${JSON.stringify(Object.fromEntries(texts))};`;
      }
      if (!id.startsWith(folder) || shortName(id) === "messages") return undefined;
      const [exported] = await catalogOf(id);
      const parts = Object.keys(LANGUAGES).map((tag) => `${tag}: () => import("messages:${shortName(id)}-${tag}")`);
      return [
        `import { language } from ${JSON.stringify(here("./src/shell/language.ts"))};`,
        `const parts = { ${parts.join(", ")} };`,
        `export const ${exported} = (await parts[language]()).default;`,
      ].join("\n");
    },
  };
}

export default defineConfig({
  root: here("."),
  // The hub may be under a path; the page finds its parts from where it is.
  base: "./",
  plugins: [react(), tailwindcss(), headingsOfDocs(), oneLanguage()],
  resolve: {
    alias: {
      // It writes a <style> element, which the Content-Security-Policy of the page refuses.
      "react-remove-scroll": here("./src/components/scroll-lock.tsx"),
    },
  },
  build: {
    outDir: here("../dist/web"),
    emptyOutDir: true,
    target: "es2023",
    assetsDir: "assets",
    // As a data: address a font or image would need more room in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // Messages wait for their language: what tells it must not be in a part that waits for messages.
        codeSplitting: {
          groups: [{ name: "language", test: /shell\/language\.ts|messages\/messages\.ts|preload-helper/ }],
        },
        // Pages of docs/ have names of views.
        chunkFileNames: ({ facadeModuleId }) =>
          facadeModuleId?.includes(".md") === true ? "assets/docs-[name]-[hash].js" : "assets/[name]-[hash].js",
      },
    },
    license: { fileName: "THIRD-PARTY-LICENSES.md" },
  },
});
