import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  // The hub may be under a path; the page finds its parts from where it is.
  base: "./",
  plugins: [react(), tailwindcss()],
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
