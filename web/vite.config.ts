import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

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

export default defineConfig({
  root: here("."),
  // The hub may be under a path; the page finds its parts from where it is.
  base: "./",
  plugins: [react(), tailwindcss(), headingsOfDocs()],
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
