/** Phrases that ask the reader to hide, to send, to give away, or to act. */
import { table } from "./cue.ts";

const secrecy = table({ kind: "secrecy", code: "concealment", verb: true }, [
  [5.5, "do|don't|never|must|should|cannot not? ~1 @tell|reveal|disclose|show|let ~3 @person ~2 about|of|that|know ~2 this|these|you|it|any|what|anything|why"],
  [3.5, "do|don't|never|must|should not? ~1 @tell ~3 @person|anyone|anybody|him|her|them"],
  [2.5, "do|don't|never|must|should not? ~1 reveal|disclose|show|let|ask|discuss|share ~4 @person|anyone|anybody"],
  [4.5, "do|don't|never not? ~1 mention|reveal|disclose|discuss|include|acknowledge|reference ~6 in ~2 your|final|the ~1 response|answer|reply|output|summary"],
  [3, "do|don't|never not? ~1 mention|reveal|disclose|discuss|acknowledge|reference|repeat this|these|that ~2 instruction|instructions|message|notice|request|step|action|note|prompt|text"],
  [4, "keep|hide|conceal ~4 from ~2 @person"],
  [3.5, "keep ~3 secret|hidden|quiet ~3 @person?"],
]);

const stealth = table({ kind: "secrecy", code: "concealment" }, [
  [3, "without ~2 telling|informing|notifying|alerting|asking|mentioning|warning|confirming ~3 @person|anyone|permission|confirmation|it|this"],
  [3, "without ~2 user's|user|their|owner's ~1 knowledge|consent|permission|confirmation|approval|noticing"],
  [3, "@quietly ~2 @act|@send|@take|@destroy|add|include|transfer|append|attach|install|perform"],
  [3, "user|human ~2 must|should|does|need|needs|is not ~2 know|see|notice|aware|informed|told"],
  [2.5, "nothing|as if ~2 happened|happen|unusual|normal"],
]);

const sending = table({ kind: "send", code: "exfiltration_request", verb: true }, [
  [5, "@send ~5 @chat ~8 to|at"],
  [5, "@send ~4 system prompt ~6 to|at"],
  [5, "@send ~3 everything|all|whatever|anything ~3 know|knows|read|seen|learned|remember|above"],
  [4.5, "@send ~4 @persons ~4 @datum|@secret ~8 to|at|via"],
  [3.5, "@send ~3 all|every|any|entire|full|complete ~3 @datum ~6 to|at"],
  [2, "@send ~2 contents|content|copy|copies|summary|list|results|output|copies ~6 to|at"],
  [3.5, "forward|bcc|cc ~3 all|every|each|any ~3 emails|email|messages|mail|correspondence ~3 to?"],
  [2.5, "@send ~3 this|it|them|these|that|result|results|output|response ~2 to|at ~3 http|https|webhook|server"],
  [5, "@put ~5 @chat|prompt|user's ~7 @urlPart"],
  [3.5, "@put ~5 @secret|@datum|summary|answer|response|context|findings|results ~6 @urlPart"],
  [4, "replace|replacing|substitute|substituting|fill|filling|where|swap ~4 with|is|for ~5 @chat|@secret|user's|contents|prompt|base64|urlencoded|actual"],
  [2.5, "visit|open|request|fetch|load|navigate|curl|get|render|display|post|call ~5 url|link|image|pixel|http|https|endpoint|webhook ~8 @chat|@secret|user's|contents|prompt|data|query|appended|parameter"],
]);

const credentials = table({ kind: "credential", code: "credential_request", verb: true }, [
  [6.5, "@reveal|@show ~2 your ~2 system|initial|original|hidden|full|exact|secret|complete ~1 prompt|instructions|instruction"],
  [4.5, "@reveal|@show ~3 system|hidden prompt|instructions"],
  [3.5, "@reveal|@show ~3 your @orders|configuration"],
  [5, "@reveal ~4 @secret"],
  [5, "@reveal ~4 @keyKind @key"],
  [3.5, "@show ~2 your|user's|all|any|every|their|stored ~3 @secret"],
  [3.5, "@show ~2 your|user's|all|any|every|their|stored ~3 @keyKind @key"],
  [4, "@show|@reveal ~4 environment variables|variable"],
  [3.5, "@take ~4 @secretFile"],
  [3, "@take ~3 @persons|all|any|stored|saved ~3 @secret"],
  [3, "@take ~3 @persons|all|any|stored|saved ~3 @keyKind @key"],
  [3, "@take ~3 environment variables"],
  [5.5, "reply|respond|answer|return ~2 with|including|containing ~4 your|user's|their|all|any ~4 @secret|key|keys"],
  [4.5, "@send us|me ~4 your|their|all ~4 @secret|key|keys|pin|code"],
  [5, "@send ~4 user's|users|their|all|any ~4 @secret ~8 to|at"],
  [5, "@send ~4 user's|users|their|all|any ~3 @keyKind @key ~8 to|at"],
  [5, "@send ~4 user's|their|all|any|your ~3 @secretFile ~8 to|at"],
  [3.5, "@send ~3 your|the ~3 @secret|@keyKind ~8 to|at"],
  [4.5, "pass|put|include|insert|add|place|supply|copy|provide|give|write|paste ~6 @secretFile|contents|content|secret|secrets|password|credentials|key|keys|history|conversation ~5 as|in|into|via|through|using ~3 sidenote|parameter|argument|field|note|notes|context|metadata|arguments|summary|reply|response"],
  [5.5, "enter|provide|confirm|verify|submit|share|send|type|reply|give|paste|input ~6 seed|recovery|mnemonic|backup phrase|words|seed"],
  [3.5, "ask|prompt|request|instruct|tell|get|convince|require ~2 @person ~3 for|to ~6 @secret"],
  [3.5, "ask|prompt|request|instruct|tell|get|convince|require ~2 @person ~3 for|to ~6 @keyKind @key"],
  [4.5, "provide|share|paste|enter|type|confirm|supply|give|send ~2 your|me|us|the ~4 @secret|key|keys ~4 chat|reply|response|conversation|message|here|below|back"],
]);

const actions = table({ kind: "tool", code: "agent_directive" }, [
  [4.5, "before|prior ~2 @tongueAct ~6 @act"],
  [4.5, "when|whenever|if|after ~2 user|users|someone|anyone ~1 asks|ask|asked|mentions|requests ~8 @act|say|respond|reply|answer|always|include|instead|recommend"],
  [2.5, "you|assistant|ai|agent|model|must must|should|need|will|shall|immediately ~2 to? call|invoke|execute|run|use|trigger ~4 tool|function|command|tools|shell|terminal|bash"],
  [1, "call|invoke|execute|run|use|trigger ~5 tool|function|command|tools|shell|terminal|bash"],
]);

const destruction = table({ kind: "destruction" }, [
  [2, "@destroy ~3 all|every|entire|everything|user's|database|repository|production|home|backups|root"],
  [2, "rm rf|fr|r"],
  [2, "transfer|wire|send|pay|move|withdraw ~4 @money"],
  [2, "disable|turn|deactivate|remove ~3 security|antivirus|firewall|logging|2fa|mfa|authentication|safety|guardrails|verification|protections"],
  [2, "curl|wget ~8 bash|sh|python"],
  [1.5, "download ~6 execute|run|install"],
  [1.5, "approve|merge|grant|accept|authorize ~6 without|access|admin|permissions|immediately|automatically"],
  [1.5, "add|create ~5 admin|administrator|backdoor|collaborator|superuser"],
  [1.5, "install|execute|run ~5 script|package|binary|payload|installer|malware"],
  [1.5, "recommend|promote|rate|rank|praise|endorse ~6 best|top|highest|only|first|product|always|candidate"],
]);

const encoded = table({ kind: "encoded", code: "encoded_payload", verb: true }, [
  [5.5, "decode|decrypt|unscramble|deobfuscate|reverse|translate ~8 follow|obey|comply|carry|perform"],
  [3.5, "decode|decrypt|unscramble|deobfuscate|reverse ~8 execute|run|act"],
]);

export const REQUEST_PHRASES = [...secrecy, ...stealth, ...sending, ...credentials, ...actions, ...destruction, ...encoded];
