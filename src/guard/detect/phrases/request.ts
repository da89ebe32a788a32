/** Phrases that ask the reader to hide, to send, to give away, or to act. */
import { table } from "./cue.ts";

const secrecy = table({ kind: "secrecy", code: "concealment", verb: true, commandOnly: true }, [
  [
    5.5,
    "do|must|should|shall not ~1 @tell|reveal|disclose|show|let ~3 @person ~2 about|of|that|know ~2 this|these|you|it|any|what|anything|why",
  ],
  [
    5.5,
    "don't|never|mustn't ~1 @tell|reveal|disclose|show|let ~3 @person ~2 about|of|that|know ~2 this|these|you|it|any|what|anything|why",
  ],
  [4, "do|must|should|shall not ~1 @tell ~5 @person"],
  [4, "don't|never|mustn't ~1 @tell ~5 @person"],
  [3, "do|must|should|shall not ~1 @tell ~3 anyone|anybody|him|her|them"],
  [3, "don't|never|mustn't ~1 @tell ~3 anyone|anybody|him|her|them"],
  [5, "don't|never let ~2 @person know|notice|find"],
  [5, "do not let ~2 @person know|notice|find"],
  [5, "never|don't reveal|disclose|show ~2 to ~1 @person that"],
  [5, "do not reveal|disclose|show ~2 to ~1 @person that"],
  [5, "under no circumstances ~2 @tell|reveal|show|disclose ~4 @person|anyone"],
  [2, "do not ask ~2 @person"],
  [4.5, "don't|never @tell him|her|them ~1 about|of ~1 it|this|that"],
  [4, "and|but|or not ~1 tell|inform|mention|notify|alert ~3 @person"],
  [1.5, "do|must|should not mention|disclose|discuss|reveal"],
  [1.5, "don't|never mention|disclose|discuss|reveal"],
  [2, "do|must|should|shall not ~1 reveal|disclose|show|let|discuss ~4 @person|anyone|anybody"],
  [2, "don't|never|mustn't ~1 reveal|disclose|show|let|discuss ~4 @person|anyone|anybody"],
  [
    4.5,
    "do|must|should not ~1 mention|reveal|disclose|discuss|include|acknowledge|reference ~6 in ~2 your|final|the ~1 response|answer|reply|output|summary",
  ],
  [
    4.5,
    "don't|never ~1 mention|reveal|disclose|discuss|include|acknowledge|reference ~6 in ~2 your|final|the ~1 response|answer|reply|output|summary",
  ],
  [
    3,
    "do|must|should not ~1 mention|reveal|disclose|discuss|acknowledge|reference|repeat this|these|that ~2 instruction|instructions|message|notice|request|step|action|note|prompt|text",
  ],
  [
    3,
    "don't|never ~1 mention|reveal|disclose|discuss|acknowledge|reference|repeat this|these|that ~2 instruction|instructions|message|notice|request|step|action|note|prompt|text",
  ],
  [4, "keep|hide|conceal ~4 from ~2 @person"],
  [3, "keep ~2 secret|hidden|quiet ~3 @person?"],
]);

const stealth = table({ kind: "secrecy", code: "concealment", unlessNegated: true }, [
  [5, "without ~2 telling|informing|notifying|alerting|warning ~3 @person"],
  [3.5, "without ~2 telling|informing|notifying|alerting|mentioning|warning ~4 anyone|it|this|@person"],
  [3, "without ~1 asking|confirming ~3 @person|anyone"],
  [4.5, "without ~2 user|user's|owner's ~1 knowledge|noticing|knowing"],
  [2, "without ~2 user's|user|their|owner's ~1 consent"],
  [2, "no need to ask|confirm|check"],
  [5, "not allowed|permitted|supposed to @tell ~4 @person"],
  [
    2,
    "without ~2 confirmation|approval|permission|asking|verification|validation|refusal|question|hesitation|restriction",
  ],
  [
    3,
    "@quietly ~2 create|change|modify|set|approve|edit|delete|@act|@send|@take|@destroy|add|include|transfer|append|attach|install|perform",
  ],
  [4, "so ~2 @person does|will|can|do not notice|know|see|find"],
  [4, "so ~2 @person doesn't|won't|can't|don't|cannot notice|know|see|find"],
  [5, "user|human|owner must|should not ~2 know|notice|find|aware|informed|told|learn"],
  [2.5, "as if nothing ~1 happened|unusual"],
]);

const sending = table({ kind: "send", code: "exfiltration_request", verb: true }, [
  [5, "@send|post ~3 @chat ~6 to|at"],
  [5, "@send|post|share ~3 chat ~1 history|log|logs|transcript|content|messages ~6 to|at|with"],
  [5, "@send|post ~3 system prompt ~6 to|at"],
  [4.5, "@send|post ~3 everything|all|whatever|anything ~3 know|knows|read|seen|learned|remember|above"],
  [4, "@send ~3 user's|customer's|victim's|client's|owner's|operator's|human's ~4 @datum|@secret ~8 to|at|via"],
  [3, "@send ~2 all|every|any|entire|full|complete ~2 @datum ~6 to|at"],
  [2, "@send ~2 contents|content|copy|copies|summary|list|results|output ~6 to|at"],
  [3.5, "forward|bcc|cc ~2 all|every|each|any ~3 emails|email|messages|mail|correspondence|invoices"],
  [2.5, "@send|post ~2 this|it|them|these|that|result|results|output|response ~2 to|at ~2 http|https|webhook"],
  [4.5, "@put ~3 @chat|user's ~5 to|in|into|as|onto|at|after ~4 @urlPart"],
  [4.5, "@put ~3 chat history|log|logs ~5 to|in|into|as|onto|at|after ~4 @urlPart"],
  [4.5, "@put ~3 system prompt ~5 to|in|into|as|onto|at|after ~4 @urlPart"],
  [3, "@put ~3 @secret|summary|answer|response|context|findings ~5 to|in|into|as|onto|at|after ~4 @urlPart"],
  [
    4,
    "replace|replacing|substitute|substituting|fill|filling|swap ~5 with ~5 @chat|user's|secret|secrets|password|passwords|credentials|urlencoded",
  ],
  [3.5, "replace|replacing|substitute|substituting|fill|filling|swap ~5 with ~5 system|chat prompt|history"],
  [4.5, "http|https ~8 followed|plus|appended|concatenated ~3 user's|@chat|last"],
  [
    2.5,
    "visit|open|fetch|load|navigate|render|request ~5 url|link|image|pixel|http|https|endpoint|webhook ~12 @chat|user's|appended",
  ],
]);

const credentials = table({ kind: "credential", code: "credential_request", verb: true }, [
  [
    6.5,
    "@reveal|@show ~2 your ~2 system|initial|original|hidden|full|exact|secret|complete ~1 prompt|instructions|instruction",
  ],
  [4.5, "@reveal|@show ~3 system|hidden prompt|instructions"],
  [3.5, "@reveal|@show ~3 your @orders|configuration"],
  [5, "@reveal ~2 your|user's|all|any|every|stored|their|other ~3 @secret"],
  [5, "@reveal ~2 your|user's|all|any|every|stored|their|other ~2 @keyKind @key"],
  [4, "@reveal the ~2 @secret"],
  [4, "@reveal the ~1 @keyKind @key"],
  [4.5, "include|add|put ~2 secrets|credentials|passwords|keys ~2 in ~2 answer|reply|response|summary|output|message"],
  [3, "@reveal ~3 @secret"],
  [3, "@show ~2 user's|users|their|stored|your ~3 @secret"],
  [3.5, "@show ~1 all|any|every ~2 credentials|passwords|secrets|credential"],
  [4, "give|tell|show|send me|us ~4 @secret"],
  [3, "@show ~2 user's|stored|your|all|any ~2 @keyKind @key"],
  [3.5, "@show|@reveal ~2 your|all|the|every|any ~1 environment variables|variable"],
  [3, "@take ~4 @secretFile"],
  [2.5, "@take ~2 user's|users|stored|saved ~3 @secret"],
  [2.5, "@take ~2 user's|users|stored|saved ~2 @keyKind @key"],
  [5.5, "reply|respond|answer ~5 with|including|containing ~4 your|user's|their|all|any ~4 @secret|key|keys"],
  [4.5, "@send us|me ~4 your|their|all ~4 @secret|key|keys|pin|code"],
  [4.5, "@send|post ~4 user's|users|all|any ~4 @secret ~8 to|at"],
  [4.5, "@send|post ~4 user's|users|all|any ~3 @keyKind @key ~8 to|at"],
  [5, "@send|post|upload|attach ~6 @secretFile ~8 to|at|with"],
  [2, "@send ~2 your|the ~3 @secret|@keyKind ~8 to|at"],
  [
    4.5,
    "pass|put|include|insert|add|place|supply|copy|provide|give|write|paste|attach ~5 @secretFile|contents|content|secret|secrets|credentials|history|conversation ~4 as|in|into ~3 sidenote|parameter|argument|field|note|notes|context|metadata|arguments",
  ],
  [
    5.5,
    "enter|provide|confirm|verify|submit|share|send|type|reply|give|paste|input ~6 seed|recovery|mnemonic|backup phrase|words|seed",
  ],
  [2.5, "ask|prompt|request|instruct|tell|get|convince|require ~2 @person ~3 for|to ~6 @secret"],
  [2.5, "ask|prompt|request|instruct|tell|get|convince|require ~2 @person ~3 for|to ~6 @keyKind @key"],
  [
    4.5,
    "provide|share|paste|enter|type|confirm|supply|give|send ~2 your|me|us|the ~4 @secret|key|keys ~4 chat|reply|response|conversation|here|below|back",
  ],
]);

const actions = table({ kind: "tool", code: "agent_directive" }, [
  [
    5,
    "before|prior ~2 @tongueAct ~5 you|must|first|should|always must|should|need|first|always? ~2 @act|include|append|add|output",
  ],
  [4, "before|prior ~2 @tongueAct ~6 @act"],
  [4.5, "you must|should|need|shall ~2 @act ~6 before ~2 @tongueAct"],
  [
    2.5,
    "when|whenever|if|after ~2 user|users|someone|anyone ~1 asks|ask|asked|mentions|requests ~8 say|respond|reply|answer|instead|recommend",
  ],
  [
    2.5,
    "you|assistant|ai|agent|model must|should|need|will|shall|immediately ~2 to? call|invoke|execute|run|use|trigger ~4 tool|function|command|tools|shell|terminal|bash",
  ],
  [3, "execute|run ~3 command|commands|script|code|following|this ~4 immediately|now|without|silently|bash|sudo"],
  [
    2.5,
    "tell|inform|notify|advise|warn|convince|instruct|persuade|urge the? user|users|reader|human|customer ~1 that|to|they|their|must ~12 click|visit|password|account|link|download|install|call|compromised|expired|pay|buy|reset|verify|website|site|http|https|upgrade|login",
  ],
  [1, "call|invoke|execute|run|use|trigger ~5 tool|function|command|tools|shell|terminal|bash"],
]);

const destruction = table({ kind: "destruction" }, [
  [2, "@destroy ~3 all|every|entire|everything|user's|database|repository|production|home|backups|root"],
  [2, "rm rf|fr|r"],
  [2, "transfer|wire|send|pay|move|withdraw ~4 @money"],
  [
    2,
    "disable|turn|deactivate|remove ~3 security|antivirus|firewall|logging|2fa|mfa|authentication|safety|guardrails|verification|protections",
  ],
  [2, "curl|wget ~8 bash|sh|python"],
  [1.5, "download ~6 execute|run|install"],
  [2, "open|download|fetch|get ~3 http|https ~12 run|execute|install"],
  [1.5, "approve|merge|grant|accept|authorize ~6 without|access|admin|permissions|immediately|automatically"],
  [1.5, "add|create ~5 admin|administrator|backdoor|collaborator|superuser"],
  [1.5, "install|execute|run ~5 script|package|binary|payload|installer|malware"],
  [2, "give|rate|rank|score|grade ~5 highest|best|top|strong|perfect|maximum|five"],
  [1.5, "@destroy ~2 branch|file|files|repository|folder|account|records|messages|emails|logs|table|user|users|them"],
  [1.5, "recommend|promote|rate|rank|praise|endorse ~6 best|top|highest|only|first|product|always|candidate"],
]);

const encoded = table({ kind: "encoded", code: "encoded_payload", verb: true }, [
  [5.5, "decode|decrypt|unscramble|deobfuscate|reverse|translate ~8 follow|obey|comply|carry|perform"],
  [3.5, "decode|decrypt|unscramble|deobfuscate|reverse ~8 execute|run|act"],
]);

export const REQUEST_PHRASES = [
  ...secrecy,
  ...stealth,
  ...sending,
  ...credentials,
  ...actions,
  ...destruction,
  ...encoded,
];
