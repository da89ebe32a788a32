/** Charts over time. */
import type { Catalog } from "./messages.ts";

export const charts = {
  latest: { en: "Latest", de: "Zuletzt", zh: "最新", ja: "最新" },
  wholeRange: { en: "Whole range", de: "Ganzer Zeitraum", zh: "整个范围", ja: "全期間" },
  asTable: { en: "Show as a table", de: "Als Tabelle zeigen", zh: "以表格显示", ja: "表で表示" },
  time: { en: "Time", de: "Zeit", zh: "时间", ja: "時刻" },
  nothing: {
    en: "Nothing happened in this range.",
    de: "In diesem Zeitraum ist nichts passiert.",
    zh: "此时间范围内没有任何活动。",
    ja: "この期間には何もありませんでした。",
  },
} satisfies Catalog;
