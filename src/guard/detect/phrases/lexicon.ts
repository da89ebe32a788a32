/** The English words that the phrase tables speak of, by class. */
import type { Lexicon } from "./book.ts";

export const LEXICON: Lexicon = {
  cancel: "ignore disregard forget neglect overlook dismiss unlearn nullify ignor disregrad",
  // Said of settings and files all day: these need a clearer object than the ones above.
  cancelMild:
    "override bypass discard cancel erase supersede overrule abandon drop void circumvent replace violate break",
  prior:
    "previous prior above earlier preceding foregoing existing original initial past former aforementioned preceeding previously preexisting",
  all: "all any every each entire",
  orders:
    "instruction instructions directive directives prompt prompts guideline guidelines programming instrucitons instuctions instructons",
  norms:
    "rules commands constraints restrictions limitations policies directions safeguards guardrails protocols safety filters training guidance",
  norm: "rule command constraint restriction limitation policy",
  talk: "message messages request requests task tasks text context conversation order orders",
  voided:
    "void cancelled canceled obsolete superseded invalid revoked overridden outdated null expired rescinded suspended lifted disabled withdrawn replaced deprecated",
  maker:
    "developer developers operator operators system owner creator creators admin administrator vendor openai anthropic google author",
  reading:
    "summarize summarise translate analyze analyse review process parse summarizing summarising translating analyzing analysing reviewing processing parsing",
  limits:
    "restrictions restriction rules limits guidelines filters limitations ethics morals boundaries constraints safeguards censorship",
  given: "above before earlier previously given received prior told far",
  obey: "follow following obey obeying heed listen adhere comply complying",
  ai: "ai assistant assistants llm llms chatbot chatbots gpt chatgpt claude gemini copilot agent agents bot bots ais",
  mind: "ai assistant assistants llm llms chatbot gpt chatgpt claude gemini model models agent agents bot copilot",
  freed: "dan unrestricted unfiltered jailbroken uncensored evil unshackled unaligned stan amoral",
  modes:
    "developer admin debug maintenance god root unrestricted jailbreak dan sudo superuser diagnostic privileged override",
  tell: "tell inform mention alert notify warn",
  reveal: "reveal disclose expose leak divulge",
  show: "print output display show list return give tell share provide repeat recite dump",
  person: "user users human humans operator customer owner victim client maintainer maintainers reviewer reviewers",
  persons: "user's users user customer's customers customer's victim's client's owner's operator's human's their",
  send: "send forward email mail upload transmit exfiltrate leak submit dispatch relay deliver beam smuggle",
  chat: "conversation conversations transcript transcripts dialogue history",
  datum:
    "data information details emails email inbox mailbox contacts files file documents document records messages address name phone history profile account conversation calendar contents notes photos location balance",
  secret:
    "password passwords passphrase credential credentials secret secrets token tokens apikey apikeys passcode mnemonic cookies cookie otp cvv ssn pin",
  keyKind: "api private ssh secret access encryption signing wallet auth authentication bearer session",
  key: "key keys token tokens credential credentials",
  // A leading dot makes another word: `.env` is a file, `env` is not.
  secretFile:
    ".env .ssh .aws .netrc .npmrc .pgpass .git-credentials .kube id_rsa id_ed25519 id_ecdsa shadow passwd kubeconfig keychain mcp.json",
  take: "read open cat access load fetch retrieve get extract collect gather find locate search copy grab harvest obtain steal scan",
  put: "append include add embed encode insert attach put place concatenate inject interpolate encoded appended",
  urlPart:
    "url urls link query parameter parameters querystring image img src pixel path subdomain hostname domain webhook http https",
  destroy: "delete remove wipe erase destroy drop format purge shred overwrite uninstall",
  money: "funds money btc bitcoin eth ethereum usd usdc usdt dollars euros payment crypto balance savings",
  tongueAct: "answering responding replying summarizing summarising answer respond reply summarize",
  act: "call invoke run execute use fetch read visit open send email query trigger perform",
  quietly: "silently secretly quietly covertly discreetly stealthily surreptitiously",
};
