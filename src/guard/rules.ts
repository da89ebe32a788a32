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
   * before each but the first they may meet in any order: "persona 200 & unbound".
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

export const RULES: readonly Rule[] = [
  { id: "drop-earlier-orders", kind: OVERRIDE, weight: 8, pattern: "drop 16 earlier 20 orders", verb: true },
  { id: "drop-orders-earlier", kind: OVERRIDE, weight: 8, pattern: "drop 16 orders 16 earlier", verb: true },
  { id: "earlier-orders-drop", kind: OVERRIDE, weight: 8, pattern: "earlier 12 orders 10 drop" },
  { id: "drop-all-before", kind: OVERRIDE, weight: 5.5, pattern: "drop 8 allBefore", verb: true },
  { id: "all-before-drop", kind: OVERRIDE, weight: 5, pattern: "allBefore 6 drop" },
  { id: "drop-your-orders", kind: OVERRIDE, weight: 6, pattern: "drop 12 strictOrders", verb: true },
  { id: "your-orders-drop", kind: OVERRIDE, weight: 5, pattern: "strictOrders 6 drop" },
  { id: "drop-own-orders", kind: OVERRIDE, weight: 5, pattern: "drop 10 own 16 orders", verb: true },
  { id: "orders-voided", kind: OVERRIDE, weight: 6, pattern: "earlier 12 orders 24 voided" },
  { id: "your-orders-voided", kind: OVERRIDE, weight: 5, pattern: "yourOrders 24 voided" },
  { id: "your-orders-drop-it", kind: OVERRIDE, weight: 5, pattern: "yourOrders 40 dropIt", across: true },
  { id: "glued", kind: OVERRIDE, weight: 7, pattern: "glued" },
  { id: "drop-task", kind: OVERRIDE, weight: 4.2, pattern: "drop 6 taskObject", verb: true },
  { id: "drop-this-and", kind: OVERRIDE, weight: 5, pattern: "drop 3 weakObject 24 instead", verb: true },
  { id: "stop-task-instead", kind: OVERRIDE, weight: 5, pattern: "stopTask 90 instead", across: true },
  { id: "stop-task-harm", kind: OVERRIDE, weight: 4, pattern: "stopTask 90 harm", across: true },
  { id: "stop-task", kind: OVERRIDE, weight: 2.5, pattern: "stopTask", weak: true },
  { id: "safety-lifted", kind: OVERRIDE, weight: 5, pattern: "safety 30 lifted" },
  { id: "lift-safety", kind: OVERRIDE, weight: 5, pattern: "lifted 14 safety", verb: true },

  { id: "new-task", kind: "task_switch", weight: 3, pattern: "newTask", weak: true, label: 5 },
  { id: "your-new-task", kind: "task_switch", weight: 4.5, pattern: "yourNewTask" },
  { id: "new-task-orders", kind: "task_switch", weight: 5, pattern: "newTask 60 youMust", across: true },
  { id: "urgent-new-task", kind: "task_switch", weight: 5.5, pattern: "urgent 60 newTask", across: true },
  { id: "praise-and-new-task", kind: "task_switch", weight: 6.5, pattern: "praise 50 newTask", across: true },
  { id: "praise-and-order", kind: "task_switch", weight: 4.2, pattern: "praise 40 nowDo", across: true },
  { id: "from-now-on", kind: "task_switch", weight: 5, pattern: "fromNowOn 16 youAre" },
  { id: "from-now-on-order", kind: "task_switch", weight: 4, pattern: "fromNowOn 60 harm" },

  { id: "mode", kind: "task_switch", weight: 5.5, pattern: "modeSwitch 20 mode" },
  { id: "mode-word", kind: "task_switch", weight: 2.5, pattern: "mode", weak: true },

  { id: "letter", kind: LETTER, weight: 5, pattern: "greeting 4 model" },
  { id: "letter-order", kind: LETTER, weight: 6.5, pattern: "greeting 4 model 60 youMust", across: true },
  { id: "if-model", kind: LETTER, weight: 5.5, pattern: "ifModel" },
  { id: "only-output", kind: LETTER, weight: 2.5, pattern: "onlyOutput", weak: true, quoted: 4 },
  { id: "output-hostile", kind: LETTER, weight: 5, pattern: "output 24 hostile" },
  { id: "urgent-order", kind: "authority_claim", weight: 3, pattern: "urgent 40 youMust", weak: true, across: true },
  { id: "urgent", kind: "authority_claim", weight: 1.5, pattern: "urgent", weak: true },
  { id: "order-harm", kind: LETTER, weight: 2, pattern: "youMust 12 harm", weak: true },

  { id: "persona", kind: "task_switch", weight: 2.5, pattern: "persona", weak: true },
  { id: "persona-unbound", kind: "task_switch", weight: 4.5, pattern: "persona 160 & unbound" },
  { id: "persona-no-refusal", kind: "task_switch", weight: 5, pattern: "persona 240 & noRefusal" },
  { id: "model-unbound", kind: "task_switch", weight: 4.2, pattern: "aiName 120 & mode" },
  { id: "model-no-refusal", kind: "task_switch", weight: 4.2, pattern: "aiName 120 & noRefusal" },
  { id: "persona-model", kind: "task_switch", weight: 4.2, pattern: "persona 80 & aiName" },
  { id: "no-refusal", kind: LETTER, weight: 3, pattern: "noRefusal", weak: true },
  { id: "unbound-no-refusal", kind: "task_switch", weight: 4.5, pattern: "unbound 120 & noRefusal" },
  { id: "future", kind: LETTER, weight: 2.5, pattern: "future", weak: true },
  { id: "decode-and-obey", kind: LETTER, weight: 4.5, pattern: "decodeIt 80 andObey", across: true },
  { id: "pretext", kind: "authority_claim", weight: 3, pattern: "pretext", weak: true },
  { id: "pretext-order", kind: "authority_claim", weight: 4.5, pattern: "pretext 60 youMust", across: true },
  { id: "authority", kind: "authority_claim", weight: 4, pattern: "claim 8 authority" },
  {
    id: "authority-order",
    kind: "authority_claim",
    weight: 4.5,
    pattern: "claim 8 authority 90 youMust",
    across: true,
  },
  { id: "override-code", kind: "authority_claim", weight: 4, pattern: "override", weak: true },
  { id: "override-order", kind: "authority_claim", weight: 5.5, pattern: "override 60 youMust", across: true },
  { id: "override-harm", kind: "authority_claim", weight: 5, pattern: "override 60 harm" },

  { id: "reveal-prompt", kind: "prompt_theft", weight: 6, pattern: "reveal 20 prompt", verb: true },
  { id: "what-is-prompt", kind: "prompt_theft", weight: 5, pattern: "whatAre 20 yourPrompt" },
  { id: "prompt-reveal", kind: "prompt_theft", weight: 4.5, pattern: "yourPrompt 8 reveal" },

  { id: "prompt-reveal-after", kind: "prompt_theft", weight: 5, pattern: "prompt 10 revealAfter" },
  { id: "secret-reveal-after", kind: "credential_request", weight: 4, pattern: "secret 24 revealAfter" },

  { id: "not-tell-user", kind: "concealment", weight: 5, pattern: "notTell 12 user" },
  { id: "user-not-tell", kind: "concealment", weight: 5, pattern: "user 8 notTell" },
  { id: "secretly", kind: "concealment", weight: 4.2, pattern: "secretly" },
  { id: "quiet-harm", kind: "concealment", weight: 4, pattern: "quiet 12 harm" },
  { id: "quiet-send", kind: "concealment", weight: 5, pattern: "quiet 12 send" },

  { id: "send-secret", kind: "credential_request", weight: 3, pattern: "send 40 secret", weak: true, verb: true },
  { id: "send-secret-out", kind: "credential_request", weight: 5, pattern: "send 40 secret 60 address", verb: true },
  { id: "secret-send-out", kind: "credential_request", weight: 3.5, pattern: "secret 30 send 60 address", weak: true },
  { id: "reveal-secret", kind: "credential_request", weight: 2.5, pattern: "reveal 24 secret", weak: true, verb: true },
  { id: "take-secret-file", kind: "credential_request", weight: 4, pattern: "take 30 secretFile", verb: true },
  { id: "send-secret-file", kind: "credential_request", weight: 4.5, pattern: "send 40 secretFile", verb: true },
  { id: "take-secret", kind: "credential_request", weight: 2.5, pattern: "take 24 secret", weak: true, verb: true },
  { id: "secret", kind: "credential_request", weight: 1, pattern: "secret", weak: true },

  {
    id: "send-private-out",
    kind: "exfiltration_request",
    weight: 4.5,
    pattern: "send 30 privateData 60 address",
    verb: true,
  },
  { id: "private-send-out", kind: "exfiltration_request", weight: 4, pattern: "privateData 30 send 40 address" },
  {
    id: "attach-private",
    kind: "exfiltration_request",
    weight: 4.2,
    pattern: "attach 30 privateData 40 address",
    verb: true,
  },
  { id: "send-hostile", kind: "exfiltration_request", weight: 4.2, pattern: "send 60 hostileAddress" },
  { id: "send-out", kind: "exfiltration_request", weight: 1.5, pattern: "send 60 address", weak: true, verb: true },

  { id: "before-tool", kind: "tool_directive", weight: 3, pattern: "beforeTool 40 tool", weak: true },
  { id: "before-harm", kind: "tool_directive", weight: 3, pattern: "beforeTool 30 harm", weak: true },
  { id: "before-secret", kind: "tool_directive", weight: 5, pattern: "beforeTool 90 secret" },
  { id: "tool-order", kind: "tool_directive", weight: 2, pattern: "youMust 24 tool", weak: true },
  { id: "drop-earlier-things", kind: OVERRIDE, weight: 5.5, pattern: "drop 20 earlier 12 things", verb: true },
  { id: "drop-things-earlier", kind: OVERRIDE, weight: 4, pattern: "drop 12 things 8 earlier", weak: true, verb: true },
  { id: "not-follow-yours", kind: OVERRIDE, weight: 6.5, pattern: "notFollow 10 yourOrders" },
  { id: "model-must", kind: LETTER, weight: 3, pattern: "modelMust", weak: true },
  { id: "model-must-harm", kind: LETTER, weight: 4, pattern: "modelMust 40 harm" },
  { id: "model-must-send", kind: LETTER, weight: 4.2, pattern: "modelMust 40 send" },
  { id: "soft-mode", kind: "task_switch", weight: 5, pattern: "youNow 16 softMode" },
  { id: "not-mention-this", kind: "concealment", weight: 5, pattern: "notMention 6 thisOrUser" },
  { id: "next-task", kind: "task_switch", weight: 2.5, pattern: "nextTask", weak: true },
  { id: "urgent-next-task", kind: "task_switch", weight: 4.5, pattern: "urgent 60 nextTask", across: true },
  { id: "next-task-urgent", kind: "task_switch", weight: 4.5, pattern: "nextTask 60 urgent", across: true },
  { id: "new-task-urgent", kind: "task_switch", weight: 5.5, pattern: "newTask 60 urgent", across: true },
  { id: "new-task-harm", kind: "task_switch", weight: 5.5, pattern: "newTask 14 harm" },
  { id: "new-task-send", kind: "task_switch", weight: 5.5, pattern: "newTask 14 send" },
  { id: "act-as", kind: "task_switch", weight: 4.5, pattern: "actAs" },
  { id: "and-harm", kind: LETTER, weight: 1.5, pattern: "andHarm", weak: true },
  { id: "hostile-output", kind: LETTER, weight: 4.5, pattern: "hostile 12 output" },
  { id: "notice", kind: "authority_claim", weight: 2.2, pattern: "notice", weak: true },
  { id: "notice-order", kind: "authority_claim", weight: 3.4, pattern: "notice 60 youMust", weak: true, across: true },
  { id: "notice-harm", kind: "authority_claim", weight: 4, pattern: "notice 40 harm" },
  { id: "reveal-your-secret", kind: "credential_request", weight: 4.2, pattern: "reveal 30 yourSecret", verb: true },
  { id: "note-for-agent", kind: LETTER, weight: 4, pattern: "noteFor 2 theAgent" },
  { id: "reveal-above", kind: "prompt_theft", weight: 4.2, pattern: "reveal 14 aboveText", verb: true },
  {
    id: "reveal-above-exactly",
    kind: "prompt_theft",
    weight: 5,
    pattern: "reveal 14 aboveText 30 exactly",
    verb: true,
  },
  { id: "reveal-prompt-exactly", kind: "prompt_theft", weight: 5, pattern: "yourPrompt 24 exactly", weak: true },
  { id: "output-granted", kind: LETTER, weight: 4.2, pattern: "output 16 granted", verb: true },
  { id: "reveal-part", kind: "prompt_theft", weight: 4.5, pattern: "reveal 24 secretPart 16 theSecret", verb: true },
  { id: "what-is-part", kind: "prompt_theft", weight: 4.5, pattern: "whatAre 24 secretPart 16 theSecret" },
  { id: "unbound-model", kind: "task_switch", weight: 4.2, pattern: "unbound 120 & aiName" },
  { id: "two-no-refusals", kind: "task_switch", weight: 4, pattern: "noRefusal 200 noRefusal", across: true },
  { id: "open-persona", kind: "task_switch", weight: 2.5, pattern: "openPersona", weak: true, opens: 4.2 },
  { id: "persona-pretext", kind: "task_switch", weight: 4.4, pattern: "asPersona 1200 & pretext" },
  { id: "persona-crime", kind: "task_switch", weight: 4.2, pattern: "asPersona 400 & crime" },
  { id: "pretext-crime", kind: "authority_claim", weight: 4.2, pattern: "pretext 600 & crime" },
  { id: "ask-crime", kind: LETTER, weight: 4, pattern: "askFor 40 crime", opens: 4.6 },
  { id: "crime", kind: LETTER, weight: 1, pattern: "crime", weak: true },
  { id: "ask-confidential", kind: "credential_request", weight: 4.2, pattern: "tellMe 30 confidential" },
  {
    id: "lift-defence",
    kind: OVERRIDE,
    weight: 3,
    pattern: "getAround 20 defence",
    weak: true,
    opens: 4.2,
    verb: true,
  },
  { id: "misuse", kind: LETTER, weight: 2.5, pattern: "misuse 24 asset", weak: true, verb: true, opens: 4.2 },
  {
    id: "misuse-purpose",
    kind: LETTER,
    weight: 3,
    pattern: "misuse 80 wrongPurpose",
    weak: true,
    verb: true,
    opens: 4.2,
  },
  { id: "disclaimer", kind: "authority_claim", weight: 3, pattern: "disclaimer", weak: true },
  { id: "persona-disclaimer", kind: "task_switch", weight: 4.4, pattern: "youAreA 2000 & disclaimer" },
  { id: "ask-disclaimer", kind: LETTER, weight: 4.2, pattern: "askFor 600 & disclaimer" },
  { id: "reveal-access", kind: "credential_request", weight: 4.2, pattern: "reveal 30 accessCode", verb: true },
  { id: "access-accepted", kind: "authority_claim", weight: 4.2, pattern: "accessCode 16 accepted" },
  { id: "treat-prompt", kind: "prompt_theft", weight: 4.2, pattern: "treat 12 yourPrompt", verb: true },
  { id: "output-script", kind: LETTER, weight: 4.5, pattern: "onlyOutput 80 script", across: true },
  { id: "no-refusal-words", kind: "task_switch", weight: 4.2, pattern: "notSay 24 refusal" },
  { id: "wallet", kind: "credential_request", weight: 4.5, pattern: "enter 12 walletSecret" },
];

/** Orders whose words are also recognised with one typing error, where the words around them are there. */
export const TYPO_WORDS = {
  drop: "ignore|disregard|override|forget|ignorier|ignoriere|vergessen|ignora|oublie|olvida|dimentica".split("|"),
  orders:
    "instructions|instruction|prompts|prompt|directives|guidelines|commands|anweisungen|instrucciones|istruzioni|instrucoes".split(
      "|",
    ),
};
