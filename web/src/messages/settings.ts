import type { Catalog } from "./messages.ts";

export const settings = {
  language: { en: "Language", de: "Sprache", zh: "语言", ja: "言語" },
  browserLanguage: { en: "Same as the browser", de: "Wie im Browser", zh: "与浏览器一致", ja: "ブラウザーと同じ" },
} satisfies Catalog;
