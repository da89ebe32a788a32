/** Phrases that tell the reader to drop its orders, to take a new role, or to take up another task. */
import { table } from "./cue.ts";

const commands = table({ kind: "override", code: "instruction_override", verb: true }, [
  [10, "@cancel ~4 @prior ~3 @orders"],
  [9.5, "@cancel ~2 your ~3 @orders"],
  [6, "@cancel ~1 my ~2 @orders|@norms"],
  [6, "@cancel ~2 @orders|@norms ~2 by|of|from|your ~2 @maker"],
  [8, "@cancel ~1 @all ~3 @orders"],
  [9, "@cancel ~3 @orders ~4 @given"],
  [8, "@cancel ~2 system|developer ~1 prompt|prompts|message|instructions"],
  [
    5,
    "@cancel ~2 everything|anything|all|what|whatever ~4 above|before|previously|earlier|prior|told|instructed|taught",
  ],
  [4, "@cancel ~3 @orders"],
  [5, "@cancel ~2 @prior ~1 @norms"],
  [6, "@cancel ~3 @norms|@norm ~3 given|told|received|previously"],
  [5.5, "@cancel ~3 @norms|@norm ~1 placed|imposed"],
  [7, "do away with ~2 @orders"],
  [6, "@cancel ~2 your ~2 @norms"],
  [3.5, "@cancel ~1 user|users|human|operator"],
  [2.5, "@cancel ~1 @all ~2 @norms"],
  [2, "@cancel ~3 @prior ~2 @talk"],
  [4, "@cancel ~2 your ~2 @talk"],
  [3, "@cancel ~1 @all ~2 @talk"],
  [6, "@cancelMild ~3 @prior ~2 @orders"],
  [6, "@cancelMild ~1 your ~2 @orders|@norms"],
  [3, "@cancelMild ~2 @all ~2 @norms"],
  [7, "pay no attention ~3 @prior|@orders ~3 @orders?"],
  [7, "throw|toss|get|put ~1 away|out|rid|aside ~3 @prior|your ~2 @orders"],
  [4, "@cancel ~4 user gave|said|asked|told|wants|set|requested"],
  [6.5, "put|set|leave|cast ~4 @orders|@norms aside"],
  [
    4,
    "disable|skip ~2 safety|security|content|ethical ~1 checks|check|protocols|filters|guidelines|restrictions|safeguards",
  ],
  [
    5.5,
    "@cancel|bypass|circumvent ~3 safety|security|content|ethical ~1 checks|check|protocols|protocol|constraints|measures|policies|policy|filters|rules|guidelines|restrictions|mechanisms|safeguards",
  ],
  [
    4.5,
    "@cancel|abandon|stop|halt|cease|drop|leave ~2 current|original|user's|users|summarization|summary|translation|analysis|review|this|your ~1 task|request|question|query|job|work|assignment",
  ],
]);

const refusals = table({ kind: "override", code: "instruction_override", verb: true, commandOnly: true }, [
  [8, "must|should|shall not @obey ~3 @prior|your|system|@all ~2 @orders|@norms"],
  [8, "do not @obey ~3 @prior|your|system|@all ~2 @orders|@norms"],
  [7, "do not @obey ~2 @orders|@norms ~3 @maker"],
  [7, "don't|stop|never @obey ~2 @orders|@norms ~3 @maker"],
  [8, "don't|stop|never|cease|quit @obey ~3 @prior|your|system|@all ~2 @orders|@norms"],
]);

const claims = table({ kind: "override", code: "instruction_override", unlessNegated: true }, [
  [6, "you ~1 not have|need|required to follow|obey|heed ~4 @orders|@norms"],
  [6, "you don't|needn't ~3 follow|obey|heed ~4 @orders|@norms"],
  [6, "you ~1 no longer ~3 bound|follow|obey|constrained|restricted|limited|subject"],
  [7, "@prior ~2 @orders ~4 @voided"],
  [5, "your ~1 @orders|@norms ~4 @voided"],
  [6, "your|@prior|system ~1 @orders|@norms ~~12 @cancel them|those|it"],
  [7, "@orders ~2 you|given|received|were ~8 @voided"],
  [7, "your|system|@prior ~1 @orders ~4 @cancel it|them|that|completely|this"],
  [6, "@prior|your|system ~1 @orders ~2 should|must|can|may|shall be ignored|disregarded|forgotten|discarded"],
  [
    3.5,
    "override|overrides|supersede|supersedes|replace|replaces|overrule|overrules|precedence|priority ~3 @all|@prior|your ~3 @orders",
  ],
  [4.5, "instead of ~4 @prior|your|system ~2 @orders"],
  [6, "ignoring|disregarding ~2 @prior|your ~2 @orders"],
  [5, "ignoring|disregarding|bypassing|forgetting|breaking ~1 your ~1 @norms"],
  [2.5, "new|updated|revised|real|actual|true|hidden|secret|emergency @orders"],
  [2.5, "@orders ~1 for|to ~2 @ai"],
]);

const personas = table({ kind: "persona", code: "instruction_override" }, [
  [7, "you|you're are? now ~2 @freed"],
  [7, "you|you're are? now ~3 @modes mode"],
  [6, "you|you're are? now ~4 @mind"],
  [5, "from now on ~1 you|you're are|must|should|only|always|shall|answer|act|respond|ignore|obey"],
  [5, "from now on ~1 you will ~1 answer|respond|reply|act|ignore|obey|only|always|behave|speak|pretend|follow|be"],
  [2.5, "from now on ~1 you|you're"],
  [5, "from now on ~3 respond|answer|act|behave|speak|obey|reply|pretend|prefix|begin|include|assistant|ignore"],
  [5, "from this point|moment ~2 you|respond|answer|act"],
  [5, "you are ~1 @freed"],
  [6.5, "act|behave|pretend|respond|roleplay|operate|answer ~4 @freed"],
  [6, "enter|enable|activate|switch|entering|enabled|activated ~3 dan|jailbreak|god|unrestricted|sudo mode"],
  [5.5, "pretend|imagine|act|assume ~4 no ~1 restrictions|rules|limits|guidelines|filters|limitations|restriction"],
  [6, "act|behave|respond|speak|operate ~1 like|as ~3 @mind ~3 without|no ~3 @limits"],
  [5.5, "assume|take|adopt|play ~2 role|persona|identity|character ~3 @mind ~5 no|without|unrestricted|never"],
  [5, "you ~2 have|has no ~1 restrictions|rules|limits|guidelines|filters|limitations"],
  [4, "do anything now"],
]);

const tasks = table({ kind: "task", code: "instruction_override" }, [
  [
    5,
    "your ~1 new|updated|revised ~1 task|goal|objective|mission|instructions|instruction|directive|orders is|are to|now",
  ],
  [5, "your ~1 goal|task|objective|purpose|mission|job|instructions is|are now"],
  [4.5, "stop what you|you're ~1 doing"],
  [4, "do not|don't answer ~2 user's|user|question|users"],
  [4, "no matter what ~1 user|users|they asks|ask|says|say"],
  [3, "whatever|regardless ~3 user ~1 asks|asked|says|wants|said"],
  [
    6,
    "your real|actual|true|secret|hidden ~1 task|goal|objective|job|mission|purpose|directive|instructions|instruction|role|orders",
  ],
  [
    3.5,
    "your ~1 new|updated|primary|revised|overriding|highest ~1 task|goal|objective|mission|instructions|instruction|directive|orders|priority",
  ],
  [3, "your only|sole|next|current|first task|goal|objective|mission|instruction|directive|job"],
  [4.5, "new|updated|revised|changed|real ~1 task|objective|mission|goal ~2 for|to ~2 you|@ai"],
  [4, "do not @reading ~2 this|it|article|document|page|text|email|file|message"],
  [4, "don't|never @reading ~2 this|it|article|document|page|text|email|file|message"],
  [3.5, "stop|cease|quit|halt @reading|answering|helping|reading"],
  [3, "obey ~2 sender|me|author|mail|page|document|text|following|this"],
  [
    5,
    "instead of|stop ~4 summarizing|summarising|answering|completing|helping|task|request ~6 @act|say|write|output|print|reply",
  ],
  [4, "@cancel ~3 user's|user|original|users ~2 request|question|task|query"],
  [3, "@cancel ~2 tool|page|document|above|rest ~1 output|result|results|input|content|message|of"],
]);

/** What the answer is to look like: content that dictates it speaks to the model. */
const replies = table({ kind: "reply", code: "instruction_override" }, [
  [
    5,
    "summary|answer|response|reply|report|review|message you write|give|produce|generate|return|send ~5 must|should|has",
  ],
  [3, "output|print|say|write|return|display the? string|phrase|word|words|sentence"],
  [2.5, "reply|respond|answer with ~2 contents|content|text|list"],
  [5, "what ~3 you told|given|instructed ~3 system|prompt|instructions"],
  [4, "respond|reply|answer ~1 with ~1 exactly|only|just|nothing"],
  [
    3,
    "say|reply|respond|answer|output|write|print|display only|just|nothing|exactly ~4 word|words|but|with|following|phrase|text|string",
  ],
  [
    3,
    "instead ~1 output|say|write|respond|print|reply|repeat|provide|list|answer|tell|reveal|show|send|do|execute|run",
  ],
  [
    5,
    "begin|start|end|prefix|finish|preface|conclude ~2 your|every|each|all ~1 response|reply|answer|summary|output|message|responses|replies ~1 with|by",
  ],
  [5, "append|add|attach ~8 to ~1 every|each|all ~1 response|reply|answer|summary|output|responses|replies"],
  [4, "append|add|attach ~8 to ~1 your|the ~1 response|reply|answer|summary|output|responses|replies"],
  [3, "include|insert|mention|embed|put ~9 in|into your|final|every|each ~1 response|reply|answer|summary|output"],
  [5, "your only|sole|entire|whole|final response|reply|answer|output ~1 should|must|shall|will|has"],
  [
    5,
    "what|which|repeat|all ~2 instructions|instruction|prompt|rules|directives ~1 you were|have|are|received|had ~1 given|told|received|been|operating|at?",
  ],
]);

export const OVERRIDE_PHRASES = [...commands, ...refusals, ...claims, ...personas, ...tasks, ...replies];
