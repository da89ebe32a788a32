/** The suspicious text of a call, in its audit record. */
import type { Catalog } from "./messages.ts";

export const passages = {
  title: { en: "Suspicious text", de: "Verdächtiger Text", zh: "可疑文本", ja: "疑わしいテキスト" },
  show: { en: "Show", de: "Anzeigen", zh: "显示", ja: "表示" },
  hide: { en: "Hide", de: "Ausblenden", zh: "隐藏", ja: "非表示" },
  caution: {
    en: "It may be written to mislead whoever reads it, people included.",
    de: "Er kann geschrieben sein, um Leser zu täuschen, auch Menschen.",
    zh: "它可能是为误导读者而写的，包括人。",
    ja: "読む者を、人も含めて欺くために書かれている可能性があります。",
  },
  gone: {
    en: "It is no longer kept. Texts are in the memory of the hub that made the call, for its last 200 calls with findings, and in no log.",
    de: "Er ist nicht mehr vorhanden. Texte stehen nur im Speicher des Hubs, der den Aufruf gemacht hat, für die letzten 200 Aufrufe mit Funden, und in keinem Protokoll.",
    zh: "已不再保留。文本只保存在执行该调用的 hub 的内存中（最近 200 次有发现的调用），不写入任何日志。",
    ja: "すでに保持されていません。テキストは呼び出しを行ったハブのメモリに、検出のあった直近 200 件分だけ置かれ、ログには残りません。",
  },
  about: {
    en: "{place}, score {score} of 10, {rules}",
    de: "{place}, Wert {score} von 10, {rules}",
    zh: "{place}，得分 {score}（满分 10），{rules}",
    ja: "{place}、スコア {score}（10 点中）、{rules}",
  },
  textOf: { en: "Text of {code}", de: "Text von {code}", zh: "{code} 的文本", ja: "{code} のテキスト" },
} satisfies Catalog;
