/**
 * The rules of the guard, as data: sequences of concepts that follow each other closely, or that meet. Their words are in
 * words.ts. To teach the guard a kind of attack, add rows.
 */
import type { FindingCode } from "../model/finding.ts";

export interface Rule {
  /** Named in `toolcrib guard test` and stable: people refer to it. */
  readonly id: string;
  readonly kind: FindingCode;
  /** Of 10. A passage is suspicious from 5 on, and surely hostile from 8 on. */
  readonly weight: number;
  /**
   * Concepts in their order. A number between two of them is the most characters between them, 30 without one. With `&`
   * before each but the first they may meet in any order: "persona 200 & unbound". A slash is between alternatives.
   */
  readonly pattern: string;
  /** The weight where a text to repeat follows, in quotation marks or capitals. It is not weak then. */
  readonly quoted?: number;
  /** The weight where a colon follows. It is not weak then. */
  readonly label?: number;
  /** The weight where a text begins with it. It is not weak then. */
  readonly opens?: number;
  /** Its concepts may be in different sentences. */
  readonly across?: true;
  /** Common in honest text: it counts only together with another kind, or in a suspicious place. */
  readonly weak?: true;
  /** The first concept is a verb: "users may ignore it" and "never ignore it" are no orders. */
  readonly verb?: true;
}

const OVERRIDE = "instruction_override";
const LETTER = "agent_directive";
const SWITCH = "task_switch";
const THEFT = "prompt_theft";
const SECRETS = "credential_request";
const SEND_OUT = "exfiltration_request";
const CLAIM = "authority_claim";
const HIDE = "concealment";
const TOOLS = "tool_directive";
const FORGED = "role_forging";

export const RULES: readonly Rule[] = [
  { id: "drop-earlier-orders", kind: OVERRIDE, weight: 8, pattern: "drop 16 earlier 20 orders", verb: true },
  { id: "drop-orders-earlier", kind: OVERRIDE, weight: 8, pattern: "drop 16 orders 16 earlier", verb: true },
  { id: "earlier-orders-drop", kind: OVERRIDE, weight: 8, pattern: "earlier 12 orders 10 drop" },
  { id: "drop-all-before", kind: OVERRIDE, weight: 5.5, pattern: "drop 8 allBefore", verb: true },
  { id: "all-before-drop", kind: OVERRIDE, weight: 5, pattern: "allBefore 6 drop" },
  { id: "drop-your-orders", kind: OVERRIDE, weight: 6, pattern: "drop 12 strictOrders", verb: true },
  { id: "your-orders-drop", kind: OVERRIDE, weight: 5, pattern: "strictOrders 6 drop" },
  { id: "orders-voided", kind: OVERRIDE, weight: 6, pattern: "earlier 12 orders 24 voided" },
  { id: "glued", kind: OVERRIDE, weight: 7, pattern: "glued" },
  { id: "drop-task", kind: OVERRIDE, weight: 4.2, pattern: "drop 6 taskObject", verb: true },
  { id: "drop-this-and", kind: OVERRIDE, weight: 5, pattern: "drop 3 weakObject 24 instead", verb: true },
  { id: "stop-task-instead", kind: OVERRIDE, weight: 4.4, pattern: "stopTask 60 & instead/harm/output/reveal/send" },
  { id: "stop-task", kind: OVERRIDE, weight: 2.5, pattern: "stopTask", weak: true },
  { id: "lift-safety", kind: OVERRIDE, weight: 5, pattern: "safety 24 & lifted" },
  { id: "new-task", kind: SWITCH, weight: 3, pattern: "newTask", weak: true, label: 5 },
  { id: "your-new-task", kind: SWITCH, weight: 4.5, pattern: "yourNewTask" },
  { id: "new-task-orders", kind: SWITCH, weight: 5, pattern: "newTask 60 youMust", across: true },
  { id: "urgent-new-task", kind: SWITCH, weight: 5.5, pattern: "urgent 60 & newTask" },
  { id: "praise-and-new-task", kind: SWITCH, weight: 6.5, pattern: "praise 50 newTask", across: true },
  { id: "praise-and-order", kind: SWITCH, weight: 4.2, pattern: "praise 40 nowDo", across: true },
  { id: "from-now-on", kind: SWITCH, weight: 5, pattern: "fromNowOn 16 youAre" },
  { id: "mode", kind: SWITCH, weight: 5.5, pattern: "modeSwitch 20 mode" },
  { id: "mode-word", kind: SWITCH, weight: 2.5, pattern: "mode", weak: true },
  { id: "letter", kind: LETTER, weight: 5, pattern: "greeting 4 model" },
  { id: "if-model", kind: LETTER, weight: 5.5, pattern: "ifModel" },
  { id: "only-output", kind: LETTER, weight: 2.5, pattern: "onlyOutput", weak: true, quoted: 4 },
  { id: "output-hostile", kind: LETTER, weight: 4.8, pattern: "output 20 & hostile" },
  { id: "urgent-order", kind: CLAIM, weight: 3, pattern: "urgent 40 youMust", weak: true, across: true },
  { id: "urgent", kind: CLAIM, weight: 1.5, pattern: "urgent", weak: true },
  { id: "order-harm", kind: LETTER, weight: 2, pattern: "youMust 12 harm", weak: true },
  { id: "persona", kind: SWITCH, weight: 2.5, pattern: "persona", weak: true },
  { id: "persona-unbound", kind: SWITCH, weight: 4.6, pattern: "persona 200 & unbound/noRefusal" },
  { id: "model-unbound", kind: SWITCH, weight: 4.2, pattern: "aiName 100 & mode/noRefusal/unbound/persona" },
  { id: "no-refusal", kind: LETTER, weight: 3, pattern: "noRefusal", weak: true, opens: 4.2 },
  { id: "unbound-no-refusal", kind: SWITCH, weight: 4.5, pattern: "unbound 120 & noRefusal" },
  { id: "future", kind: LETTER, weight: 2.5, pattern: "future", weak: true },
  { id: "decode-and-obey", kind: LETTER, weight: 4.5, pattern: "decodeIt 80 andObey", across: true },
  { id: "pretext", kind: CLAIM, weight: 3, pattern: "pretext", weak: true },
  { id: "pretext-order", kind: CLAIM, weight: 4.5, pattern: "pretext 60 youMust", across: true },
  { id: "authority", kind: CLAIM, weight: 4.2, pattern: "claim 8 authority" },
  { id: "override-code", kind: CLAIM, weight: 4, pattern: "override", weak: true, label: 4.2 },
  { id: "override-order", kind: CLAIM, weight: 5.2, pattern: "override 60 youMust/harm", across: true },
  { id: "reveal-prompt", kind: THEFT, weight: 6, pattern: "reveal 20 prompt", verb: true },
  { id: "what-is-prompt", kind: THEFT, weight: 5, pattern: "whatAre 24 yourPrompt/prompt" },
  { id: "prompt-reveal", kind: THEFT, weight: 4.5, pattern: "yourPrompt 8 reveal" },
  { id: "prompt-reveal-after", kind: THEFT, weight: 5, pattern: "prompt 10 revealAfter" },
  { id: "secret-reveal-after", kind: SECRETS, weight: 4, pattern: "secret 24 revealAfter" },
  { id: "not-tell-user", kind: HIDE, weight: 5, pattern: "notTell 12 user" },
  { id: "user-not-tell", kind: HIDE, weight: 5, pattern: "user 8 notTell" },
  { id: "secretly", kind: HIDE, weight: 4.2, pattern: "secretly" },
  { id: "quiet-harm", kind: HIDE, weight: 4.2, pattern: "quiet 12 harm/send", verb: true },
  { id: "send-secret", kind: SECRETS, weight: 3, pattern: "send 40 secret", weak: true, verb: true },
  { id: "send-secret-out", kind: SECRETS, weight: 5, pattern: "send 40 secret 60 address", verb: true },
  { id: "secret-send-out", kind: SECRETS, weight: 3.5, pattern: "secret 30 send 60 address", weak: true },
  { id: "reveal-secret", kind: SECRETS, weight: 2.5, pattern: "reveal/take 24 secret", weak: true, verb: true },
  { id: "take-secret-file", kind: SECRETS, weight: 4.2, pattern: "take/tellMe/send 40 secretFile", verb: true },
  { id: "secret", kind: SECRETS, weight: 1, pattern: "secret", weak: true },
  { id: "send-private-out", kind: SEND_OUT, weight: 4.4, pattern: "send/attach 30 privateData 50 address", verb: true },
  { id: "private-send-out", kind: SEND_OUT, weight: 4, pattern: "privateData 30 send 40 address" },
  { id: "send-hostile", kind: SEND_OUT, weight: 4.2, pattern: "send 60 hostileAddress" },
  { id: "send-out", kind: SEND_OUT, weight: 1.5, pattern: "send 60 address", weak: true, verb: true },
  { id: "before-tool", kind: TOOLS, weight: 3, pattern: "beforeTool 40 tool/harm", weak: true },
  { id: "before-secret", kind: TOOLS, weight: 5, pattern: "beforeTool 50 take 50 secret" },
  { id: "tool-order", kind: TOOLS, weight: 2, pattern: "youMust 24 tool", weak: true },
  { id: "drop-earlier-things", kind: OVERRIDE, weight: 5.5, pattern: "drop 20 earlier 12 things", verb: true },
  { id: "not-follow-yours", kind: OVERRIDE, weight: 6.5, pattern: "notFollow 10 strictOrders", verb: true },
  { id: "model-must", kind: LETTER, weight: 3, pattern: "modelMust", weak: true },
  { id: "model-must-harm", kind: LETTER, weight: 4.2, pattern: "modelMust 40 harm/send" },
  { id: "soft-mode", kind: SWITCH, weight: 5, pattern: "youNow 16 softMode" },
  { id: "next-task", kind: SWITCH, weight: 2.5, pattern: "nextTask", weak: true },
  { id: "urgent-next-task", kind: SWITCH, weight: 4.5, pattern: "urgent 60 & nextTask" },
  { id: "new-task-harm", kind: SWITCH, weight: 5.5, pattern: "newTask 14 harm/send" },
  { id: "act-as", kind: SWITCH, weight: 4.5, pattern: "actAs" },
  { id: "and-harm", kind: LETTER, weight: 1.5, pattern: "andHarm", weak: true },
  { id: "notice", kind: CLAIM, weight: 2.2, pattern: "notice", weak: true },
  { id: "notice-order", kind: CLAIM, weight: 3.4, pattern: "notice 50 youMust/harm", weak: true, across: true },
  { id: "reveal-your-secret", kind: SECRETS, weight: 4.2, pattern: "reveal 30 yourSecret/accessCode", verb: true },
  { id: "reveal-above", kind: THEFT, weight: 4.2, pattern: "reveal 14 aboveText", verb: true },
  { id: "reveal-prompt-exactly", kind: THEFT, weight: 5, pattern: "yourPrompt 24 exactly", weak: true },
  { id: "output-granted", kind: LETTER, weight: 4.2, pattern: "output 16 granted", verb: true },
  { id: "reveal-part", kind: THEFT, weight: 4.5, pattern: "reveal/whatAre 24 secretPart 16 theSecret" },
  { id: "two-no-refusals", kind: SWITCH, weight: 4, pattern: "noRefusal 200 noRefusal", across: true },
  { id: "open-persona", kind: SWITCH, weight: 2.5, pattern: "openPersona", weak: true, opens: 4.2 },
  { id: "persona-pretext", kind: SWITCH, weight: 4.4, pattern: "asPersona 600 & pretext/crime" },
  { id: "pretext-crime", kind: CLAIM, weight: 4.2, pattern: "pretext 600 & crime" },
  { id: "ask-crime", kind: LETTER, weight: 4, pattern: "askFor 40 crime", opens: 4.6 },
  { id: "crime", kind: LETTER, weight: 1, pattern: "crime", weak: true },
  { id: "ask-confidential", kind: SECRETS, weight: 4.2, pattern: "tellMe 30 confidential" },
  { id: "lift-defence", kind: OVERRIDE, weight: 3, pattern: "getAround 20 defence", weak: true, opens: 4.2 },
  { id: "misuse", kind: LETTER, weight: 2.8, pattern: "misuse 40 asset/wrongPurpose", weak: true, opens: 4.2 },
  { id: "disclaimer", kind: CLAIM, weight: 3, pattern: "disclaimer", weak: true },
  { id: "persona-disclaimer", kind: SWITCH, weight: 4.4, pattern: "youAreA 2000 & disclaimer" },
  { id: "ask-disclaimer", kind: LETTER, weight: 4.2, pattern: "askFor 300 & disclaimer" },
  { id: "access-accepted", kind: CLAIM, weight: 4.2, pattern: "accessCode 16 accepted" },
  { id: "output-script", kind: LETTER, weight: 4.5, pattern: "onlyOutput 80 script", across: true },
  { id: "no-refusal-words", kind: SWITCH, weight: 4.2, pattern: "notSay 24 refusal" },
  { id: "wallet", kind: SECRETS, weight: 4.5, pattern: "enter 12 walletSecret" },
  { id: "drop-own-orders", kind: OVERRIDE, weight: 4.8, pattern: "drop/dropWide 12 own 16 orders/self", verb: true },
  { id: "given-orders-voided", kind: OVERRIDE, weight: 5, pattern: "orders 30 gotOrders 50 voided" },
  { id: "drop-given-orders", kind: OVERRIDE, weight: 5.5, pattern: "drop 24 orders 14 gotOrders", verb: true },
  { id: "own-orders-voided", kind: OVERRIDE, weight: 5, pattern: "own 16 orders/self 24 voided" },
  { id: "only-these-orders", kind: OVERRIDE, weight: 4.2, pattern: "onlyOrders" },
  { id: "end-of-data", kind: FORGED, weight: 3, pattern: "endOfData", weak: true },
  {
    id: "end-of-data-order",
    kind: FORGED,
    weight: 4.6,
    pattern: "endOfData 60 youMust/newTask/ifModel/badDo",
    across: true,
  },
  { id: "new-input", kind: FORGED, weight: 2.2, pattern: "newInput", weak: true, label: 3.8 },
  { id: "model-reading", kind: LETTER, weight: 4.4, pattern: "model 24 reading" },
  { id: "vocative", kind: LETTER, weight: 2.5, pattern: "vocative", weak: true },
  { id: "vocative-order", kind: LETTER, weight: 4.2, pattern: "vocative 24 drop/reveal/send/harm/youMust" },
  { id: "done-next", kind: SWITCH, weight: 3.4, pattern: "taskDone 60 thenDo", weak: true, across: true },
  { id: "done-next-harm", kind: SWITCH, weight: 4.4, pattern: "praise/taskDone 60 thenDo 40 badDo", across: true },
  { id: "permit", kind: CLAIM, weight: 3, pattern: "permit", weak: true, opens: 4.2 },
  { id: "ask-secret", kind: SECRETS, weight: 3, pattern: "tellMe 24 secret", weak: true, verb: true, opens: 4.2 },
  { id: "must-call", kind: TOOLS, weight: 2.5, pattern: "mustCall", weak: true },
  {
    id: "pass-conversation",
    kind: TOOLS,
    weight: 4.2,
    pattern: "tool/mustCall 90 & wholeTalk/secretFile 60 & toolPart",
  },
  { id: "reply-only", kind: LETTER, weight: 2.2, pattern: "replyOnly", weak: true, opens: 4.2 },
  { id: "favour", kind: LETTER, weight: 4.2, pattern: "judge 40 favour", verb: true },
  { id: "before-answer", kind: LETTER, weight: 4.2, pattern: "beforeAnswer 30 harmful", across: true },
  { id: "take-and-send", kind: SEND_OUT, weight: 4.2, pattern: "take 50 dataFile 80 send 60 address", across: true },
  { id: "model-order-harm", kind: LETTER, weight: 3.4, pattern: "model 30 mustWord 24 harmful", weak: true },
  { id: "above-voided", kind: OVERRIDE, weight: 4.6, pattern: "allBefore 20 voided" },
  { id: "treat-as-orders", kind: LETTER, weight: 4.4, pattern: "treatIt 50 asOrders", verb: true },
  { id: "if-you-are-model", kind: LETTER, weight: 4.4, pattern: "ifYou 8 model" },
  { id: "to-you-model", kind: LETTER, weight: 5, pattern: "toYou 6 model" },
  { id: "resume-task", kind: SWITCH, weight: 3.2, pattern: "resumeTask", weak: true },
  { id: "resume-task-harm", kind: SWITCH, weight: 4.4, pattern: "resumeTask 60 & harmful" },
  { id: "memorise", kind: LETTER, weight: 4.2, pattern: "memorise 50 alwaysDo", across: true },
];

/** Orders whose words are also recognised with one typing error, where the words around them are there. */
export const TYPO_WORDS = {
  drop: "ignore|disregard|override|forget|ignorier|ignoriere|vergessen|ignora|oublie|olvida|dimentica".split("|"),
  orders: "instructions|instruction|prompt|directives|guidelines|commands|anweisungen|instrucciones|istruzioni".split(
    "|",
  ),
};
