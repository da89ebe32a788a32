import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const DOCS = here("../docs/");

/** `virtual:docs` lists the pages of docs/ with their headings, so that they can be found without loading them. */
function docsIndex(): Plugin {
  const resolved = "\0virtual:docs";
  const textOf = (markdown: string): string => markdown.replaceAll(/[`*]|<[^>]*>|\[|\]\([^)]*\)/g, "").trim();
  return {
    name: "docs-index",
    resolveId: (id) => (id === "virtual:docs" ? resolved : undefined),
    load(id) {
      if (id !== resolved) return undefined;
      const pages = readdirSync(DOCS)
        .filter((name) => name.endsWith(".md") && name !== "README.md")
        .map((name) => {
          const text = readFileSync(`${DOCS}${name}`, "utf8").replaceAll(/^```[^]*?^```/gm, "");
          const headings = [...text.matchAll(/^(#{1,3}) (.+)$/gm)].map(([, , heading = ""]) => textOf(heading));
          return { page: name.slice(0, -3), title: headings[0] ?? name, headings: headings.slice(1) };
        });
      return `export default ${JSON.stringify(pages)};`;
    },
  };
}

export default defineConfig({
  root: here("."),
  base: "/",
  plugins: [react(), tailwindcss(), docsIndex()],
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
    license: { fileName: "THIRD-PARTY-LICENSES.md" },
  },
});
