import type { Catalog } from "./messages.ts";

export const help = {
  about: {
    en: "The documentation of this version, in English.",
    de: "Die Dokumentation dieser Version, auf Englisch.",
    zh: "此版本的文档（英文）。",
    ja: "このバージョンのドキュメント（英語）。",
  },
  pages: { en: "Pages", de: "Seiten", zh: "页面", ja: "ページ" },
  allPages: { en: "All pages", de: "Alle Seiten", zh: "所有页面", ja: "すべてのページ" },
  choose: { en: "Choose a page", de: "Eine Seite wählen", zh: "请选择一个页面", ja: "ページを選んでください" },
} satisfies Catalog;
