/** Questions of servers while a call from the page runs. */
import type { Catalog } from "./messages.ts";

export const questions = {
  asks: { en: "{server} asks", de: "{server} fragt", zh: "{server} 询问", ja: "{server} からの質問" },
  asksModel: {
    en: "{server} asks a model",
    de: "{server} fragt ein Modell",
    zh: "{server} 请求模型",
    ja: "{server} がモデルに尋ねています",
  },
  asksToOpen: {
    en: "{server} asks you to open an address",
    de: "{server} möchte, dass du eine Adresse öffnest",
    zh: "{server} 请求打开一个地址",
    ja: "{server} がアドレスを開くよう求めています",
  },
  during: {
    en: "While {name} runs.",
    de: "Während {name} läuft.",
    zh: "在运行 {name} 时。",
    ja: "{name} の実行中。",
  },
  fieldsAreSent: {
    en: "Your answer goes to this server. Do not enter passwords.",
    de: "Die Antwort geht an diesen Server. Keine Passwörter eingeben.",
    zh: "您的回答会发送给此服务器。请勿输入密码。",
    ja: "回答はこのサーバーに送られます。パスワードは入力しないでください。",
  },
  answer: { en: "Answer", de: "Antworten", zh: "回答", ja: "回答する" },
  decline: { en: "Decline", de: "Ablehnen", zh: "拒绝", ja: "断る" },
  leads: { en: "It leads to", de: "Sie führt zu", zh: "它指向", ja: "移動先" },
  opens: { en: "Open {host}", de: "{host} öffnen", zh: "打开 {host}", ja: "{host} を開く" },
  insecure: {
    en: "This address is not encrypted: others on the network can read what you send there.",
    de: "Diese Adresse ist nicht verschlüsselt: andere im Netz können mitlesen.",
    zh: "此地址未加密：网络上的其他人可以看到您发送的内容。",
    ja: "このアドレスは暗号化されていません。送った内容を他の人に読まれるおそれがあります。",
  },
  unsafe: {
    en: "This address hides where it leads, and is not opened.",
    de: "Diese Adresse verbirgt ihr Ziel und wird nicht geöffnet.",
    zh: "此地址隐藏了真实目标，不会打开。",
    ja: "このアドレスは行き先を隠しているため、開きません。",
  },
  samplingHow: {
    en: "The server wants this sent to a model. The page has none: write the answer in its place, or decline.",
    de: "Der Server möchte das an ein Modell schicken. Die Seite hat keines: schreib die Antwort selbst oder lehne ab.",
    zh: "服务器希望将以下内容发送给模型。本页面没有模型：请代为撰写回答，或拒绝。",
    ja: "サーバーはこれをモデルに送ろうとしています。このページにモデルはありません。代わりに答えを書くか、断ってください。",
  },
  system: { en: "System prompt", de: "System-Prompt", zh: "系统提示", ja: "システムプロンプト" },
  limits: { en: "Limits and wishes", de: "Grenzen und Wünsche", zh: "限制与偏好", ja: "制限と希望" },
  yourAnswer: { en: "Answer of the model", de: "Antwort des Modells", zh: "模型的回答", ja: "モデルの答え" },
  send: { en: "Send this answer", de: "Diese Antwort senden", zh: "发送此回答", ja: "この答えを送る" },
  wrong: {
    en: "{count} value is missing or wrong. | {count} values are missing or wrong.",
    de: "{count} Wert fehlt oder ist falsch. | {count} Werte fehlen oder sind falsch.",
    zh: "{count} 个值缺失或有误。",
    ja: "{count} 個の値が足りないか正しくありません。",
  },
} satisfies Catalog;
