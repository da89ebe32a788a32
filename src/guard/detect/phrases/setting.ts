/** Phrases that tell to whom a text speaks, how, and what it is about. */
import { table } from "./cue.ts";

const address = table({ kind: "address", code: "agent_directive" }, [
  [3, "attention|note|message|notice|memo|reminder|instructions|instruction|request|warning|directive to|for ~3 @ai"],
  [3, "attention|dear|hey|hello ~1 @ai"],
  [3, "important ~3 instructions|note|message|notice ~1 for|to ~3 @ai"],
  [3.5, "if you|you're are? ~3 ai|llm|language|assistant|agent|chatbot|model|bot"],
  [
    3.5,
    "@mind ~2 reading|processing|summarizing|summarising|parsing|analyzing|analysing|viewing|handling|accessing|ingesting|crawling|indexing ~1 this",
  ],
  [2, "as ~1 ai|assistant|llm|language|agent ~2 you"],
  [3.5, "any|every llm|ai|assistant|agent|model|bot|chatbot ~2 reads|reading|sees|processes|parses ~1 this"],
  [3.5, "to all|any|every ~1 ai|llm|language|chatbots|assistants|llms models|agents|assistants|systems|bots?"],
  [3.5, "to the? ai|assistant|llm|model|agent|chatbot that|who|which|reading|processing"],
  [3, "@ai please ~2 @act|@send|@destroy|@take"],
  [3.5, "you the assistant|ai|agent|llm|model|chatbot"],
  [3, "@ai must|shall now|immediately"],
  [2, "@ai must|should|shall ~1 also|first|always|ignore|send|forward|call|run|execute|include|reveal|not"],
]);

const manner = [
  ...table({ kind: "directive" }, [
    [0.5, "you must|should|shall|will|need|have"],
    [0.5, "you are required|instructed|ordered|to|expected|obligated"],
    [0.5, "please|kindly|now @act|@send"],
  ]),
  ...table({ kind: "urgency" }, [
    [0.5, "immediately|urgent|urgently|critical|important|mandatory|asap|crucial|required"],
  ]),
  ...table({ kind: "authority" }, [
    [
      1,
      "system|admin|administrator|security|developer|openai|anthropic|root|google|microsoft ~1 override|notice|message|update|alert|directive|command|instruction|instructions|announcement|note|prompt|notification|team",
    ],
    [
      1,
      "authorized|authorised|approved|sanctioned|authorization|preapproved ~4 user|admin|administrator|developer|openai|anthropic|owner|system",
    ],
    [1, "maintenance|developer|debug|admin|diagnostic mode"],
  ]),
];

/** Words of texts about attacks. Weight 2 names the subject itself, weight 1 is vocabulary of the field. */
const topics = table({ kind: "topic" }, [
  [2, "prompt|instruction|indirect|command|context|llm|tool injection|injections|poisoning|hijacking|leaking|leakage"],
  [2, "jailbreak|jailbreaks|jailbreaking|jailbroken|injection|injections|owasp|adversarial|exfiltration"],
  [2, "red team|teaming|teamers"],
  [
    1,
    "attacker|attackers|attack|attacks|adversary|malicious|exploit|exploits|vulnerability|vulnerabilities|mitigation|mitigations|mitigate|payload|payloads|untrusted|poisoned|phishing|cve",
  ],
  [
    1,
    "classifier|detector|detectors|detect|detects|detection|benchmark|dataset|regex|filter|sanitize|sanitization|moderation",
  ],
  [1, "chatml|tokenizer|template|templates|tokens"],
  [1, "security researchers|researcher|research|paper|article|blog|post"],
]);

export const SETTING_PHRASES = [...address, ...manner, ...topics];
