/**
 * The rules of the guard, as data: sequences of concepts that follow each other closely, or that meet. Their words are in
 * words.ts. To teach the guard a kind of attack, add rows.
 *
 * A row is a rule: its kind, its name, its weight and what else is known of it, and its pattern. A pattern has concepts in
 * their order. A number between two of them is the most characters between them, 30 without one. With `&` before each but
 * the first they may meet in any order: "persona 200 & unbound". A slash is between alternatives, a semicolon between patterns.
 */
import type { FindingCode } from "../model/finding.ts";

export interface Rule {
  /** Named in `toolcrib guard test` and stable: people refer to it. */
  readonly id: string;
  readonly kind: FindingCode;
  /** Of 10. A passage is suspicious from 3.7 on, and surely hostile from 7 on. */
  readonly weight: number;
  readonly pattern: string;
  /** The weight where a text to repeat is beside it, in quotation marks or capitals. Like the next two, it is not weak then. */
  readonly quoted?: number;
  /** The weight where a colon follows. */
  readonly label?: number;
  /** The weight where a text begins with it. */
  readonly opens?: number;
  /** The weight where a sentence begins with it and a comma follows, as in an address. */
  readonly called?: number;
  /** Its concepts may be in different sentences. */
  readonly across?: true;
  /** Common in honest text: it counts only together with another kind, or in a suspicious place. */
  readonly weak?: true;
  /** The first concept is a verb: "users may ignore it" and "never ignore it" are no orders. */
  readonly verb?: true;
}

const TABLE = `
instruction_override | drop-earlier-orders | 8 verb | drop 16 earlier 20 orders; drop 16 orders 16 earlier
instruction_override | earlier-orders-drop | 8 | earlier 12 orders 10 drop
instruction_override | drop-all-before | 5.5 verb | drop 8 allBefore; drop 20 earlier 12 things; drop 24 orders 14 youGot
instruction_override | all-before-drop | 5 | allBefore 6 drop; strictOrders 6 drop
instruction_override | drop-your-orders | 6 verb | drop 12 strictOrders; notFollow 10 strictOrders
instruction_override | orders-voided | 5.5 | earlier 12 orders 24 voided; orders 12 earlier 24 voided
instruction_override | glued | 7 | glued
instruction_override | drop-task | 4.2 verb | drop 6 taskObject
instruction_override | task-drop | 4.2 | taskObject 3 drop; weakObject 3 drop 24 instead
instruction_override | drop-this-and | 5 verb | drop 3 weakObject 24 instead
instruction_override | stop-task-instead | 4.4 | stopTask 60 & instead/harm/output/reveal/send
instruction_override | stop-task | 2.5 weak | stopTask
instruction_override | lift-safety | 5 | safety 24 & lifted
instruction_override | lift-defence | 3 weak opens=4.2 | lifted 20 defence
instruction_override | drop-own-orders | 4.8 verb | drop/dropWide 12 own 16 orders/self/limitNoun
instruction_override | given-orders-voided | 4.8 | orders 30 youGot 50 voided; own 16 orders/self/limitNoun 24 voided; allBefore 20 voided; youGot 40 voided
instruction_override | freed-from-orders | 4.8 | freedFrom 8 own 16 orders; freedFrom 12 strictOrders; model 40 freedFrom 16 orders; notFollow 8 own 16 orders
instruction_override | only-these-orders | 4.2 | onlyOrders
task_switch | new-task | 3 weak label=5 | newTask
task_switch | your-new-task | 4.5 | yourNewTask
task_switch | new-task-orders | 5 across | newTask 60 youMust
task_switch | urgent-new-task | 5 | urgent 60 & newTask/nextTask
task_switch | praise-and-new-task | 6.5 across | praise 50 newTask
task_switch | praise-and-order | 4.3 across | praise 40 nowDo; praise/taskDone 60 thenDo 40 harmful; praise 60 taskDone 80 nextTask/newTask
task_switch | from-now-on | 5 | fromNowOn 16 youAre; fromNowOn 12 unbound/mode/noRefusal; youNow 16 softMode
task_switch | mode | 5.5 | modeSwitch 20 mode
task_switch | mode-word | 2.5 weak | mode
task_switch | next-task | 3.2 weak | nextTask
task_switch | persona | 2.5 weak | persona
task_switch | persona-unbound | 4.6 | persona 200 & unbound/noRefusal
task_switch | model-unbound | 4.2 | aiName 100 & mode/noRefusal/unbound/persona
task_switch | unbound-no-refusal | 4.5 | unbound 120 & noRefusal; softMode 50 & unbound
task_switch | you-unbound | 3.2 weak opens=4.2 | youHave 10 unbound
task_switch | new-task-harm | 5.5 | newTask 14 harm/send
task_switch | two-no-refusals | 4 across | noRefusal 200 noRefusal
task_switch | open-persona | 2.5 weak opens=4.2 | openPersona
task_switch | persona-pretext | 4.4 | asPersona 600 & crime/disclaimer/pretext; pretext 600 & crime; youAreA 2000 & disclaimer
task_switch | no-refusal-words | 4.2 | notSay 24 refusal; refusal 24 banned; mode 6 modeSwitch; persona 80 crime
task_switch | done-next | 3.4 weak across | taskDone 60 thenDo
task_switch | resume-task | 3.2 weak | resumeTask
task_switch | resume-task-harm | 4.4 | resumeTask 60 & harmful
task_switch | task-changed | 3 weak | own 10 taskNoun 6 changedWord
task_switch | task-changed-harm | 4.4 across | own 10 taskNoun 8 changedWord 40 harm/harmful/send
agent_directive | letter | 5 | greeting 8 model; ifModel
agent_directive | letter-note | 3.6 label=5 | noteTo 8 model
agent_directive | call-model | 1.5 weak label=4 | calling 3 plainModel/model
agent_directive | only-output | 2.5 weak quoted=3.6 | onlyOutput
agent_directive | output-hostile | 4.8 | output 20 & hostile
agent_directive | order-harm | 2.4 weak | youMust 12 harm
agent_directive | no-refusal | 3 weak opens=4.2 | noRefusal
agent_directive | future | 2.5 weak | future
agent_directive | decode-and-obey | 4.5 across | decodeIt 80 andObey
agent_directive | model-must | 2.6 weak | modelMust
agent_directive | model-must-do | 3.2 weak | modelMust 30 harmful
agent_directive | model-must-harm | 3.4 weak | modelMust 24 harm/send
agent_directive | output-granted | 4.2 verb | output 16 granted; judge 40 favour; favour 24 judge
agent_directive | ask-crime | 3 weak opens=4.6 | askFor 40 crime
agent_directive | crime | 1 weak | crime
agent_directive | misuse | 2.8 weak opens=4.2 | misuse 40 confidential/wrongPurpose
agent_directive | ask-disclaimer | 4.2 | askFor 300 & disclaimer
agent_directive | output-script | 4.5 across | onlyOutput 80 script
agent_directive | model-reading | 4.4 | model 24 reading; reading 12 model; ifYou 10 model; readBy 16 model 80 mustWord; humans 16 maySkip; maySkip 10 humans; vocative 24 drop/greeting/harm/reveal/send/youMust
agent_directive | vocative | 2.5 weak | vocative
agent_directive | your-human | 2.4 weak | yourHuman
agent_directive | called | 0.9 weak called=3.6 | model; calling 3 plainModel/model
agent_directive | reply-only | 2.2 weak quoted=3.8 opens=4.2 | replyOnly
agent_directive | later-order | 4.2 across | beforeAnswer 30 harmful
agent_directive | future-order | 3.6 across | future 50 youAre
agent_directive | treat-as-orders | 4.4 verb | treatIt 50 asOrders
agent_directive | answer-frame | 3 weak quoted=4.2 | answerNoun 16 mustWord 8 frameVerb; answerNoun 4 frameVerb
agent_directive | every-answer | 2.8 weak verb quoted=4 | appendVerb 24 everyAnswer; everyAnswer 30 appendVerb
authority_claim | urgent-order | 3.2 weak across | urgent 40 youMust; notice 50 harm/youMust
authority_claim | urgent | 1.5 weak | urgent
authority_claim | pretext | 3 weak opens=4 | pretext/disclaimer
authority_claim | pretext-order | 4.8 across | pretext 60 youMust; override 60 harm/youMust
authority_claim | authority | 4.2 | claim 8 authority; accessCode 24 accepted; adminRole/authority 40 authorised; urgent 60 obey; obey 40 urgent
authority_claim | override-code | 4 weak label=4.2 | override
authority_claim | notice | 2.8 weak label=3.8 | notice
authority_claim | permit | 3 weak opens=4.2 | permit
authority_claim | role-freedom | 4.2 across | claim 8 adminRole 60 freedom; adminRole 4 claim 60 freedom
authority_claim | refuse-penalty | 4.2 | ifRefuse 60 & penalty
prompt_theft | reveal-prompt | 6 verb | reveal 20 prompt
prompt_theft | what-is-prompt | 5 | whatAre 24 prompt/yourPrompt; prompt 10 revealAfter
prompt_theft | prompt-reveal | 4.5 | yourPrompt 8 reveal; reveal/whatAre 24 secretPart 16 theSecret
prompt_theft | reveal-above | 4.2 verb | reveal 14 aboveText; reveal 60 beforeTalk; attach 16 prompt 30 address/everyAnswer/toolPart
prompt_theft | first-words | 4.2 across | youGot 24 atStart 60 reveal/revealAfter; atStart 30 youGot 60 reveal/revealAfter
prompt_theft | ask-forbidden | 4.2 | aboveText 12 revealAfter; beforeTalk 50 revealAfter; revealAfter 40 beforeTalk; promptNoun/reveal/whatAre 24 forbidTell
credential_request | secret-reveal-after | 4 | secret 24 revealAfter; secretFile 40 revealAfter
credential_request | send-secret-out | 5 verb | send 40 secret 60 address
credential_request | secret-send-out | 3.5 weak | secret 30 send 60 address
credential_request | reveal-secret | 3 weak verb | reveal/take 24 secret; send 40 secret
credential_request | take-secret-file | 4.2 verb | send/take/tellMe 40 secretFile; take/find 30 secret 60 revealAfter
credential_request | reveal-code | 4.2 verb | reveal 30 accessCode/yourSecret
credential_request | secret | 1 weak | secret
credential_request | ask-confidential | 3 weak opens=4.2 | tellMe 30 confidential
credential_request | wallet | 4.5 | enter 12 walletSecret
credential_request | ask-secret | 3 weak verb opens=4.2 | tellMe 24 secret
concealment | not-tell-user | 5 | notTell 12 user; user 8 notTell
concealment | secretly | 4.2 | secretly
concealment | quiet-harm | 4.2 verb | quiet 12 harm/send
exfiltration_request | send-private-out | 4.4 verb | send/attach 30 privateData 50 address; privateData 90 sendAway
exfiltration_request | send-hostile | 4 | send 60 hostileAddress; privateData 30 send 40 address
exfiltration_request | send-out | 2 weak verb | send 60 address
exfiltration_request | take-and-send | 4.2 across | take 50 dataFile/secretFile 80 send 60 address; dataFile/secretFile 16 take 90 address 24 send
tool_directive | before-tool | 3 weak | beforeTool 40 tool/harm
tool_directive | before-secret | 5 | beforeTool 50 take 50 secret
tool_directive | must-call | 2.2 weak | mustCall; youMust 24 tool
tool_directive | tool-replaced | 4.2 across | thisTool 50 replaceVerb 80 notUse
tool_directive | pass-conversation | 4.2 | beforeTool 40 tool 110 secretFile; beforeTool 60 tool 60 mustCall 60 address; mustCall/tool 90 & secretFile/wholeTalk 60 & toolPart
role_forging | end-of-data | 3 weak | endOfData
role_forging | end-of-data-order | 4.6 across | endOfData 60 youMust/newTask/harmful
role_forging | new-input | 2.2 weak label=3.8 | newInput
`;

export const RULES: readonly Rule[] = TABLE.trim()
  .split("\n")
  .map((row) => {
    const [kind = "", id = "", known = "", pattern = ""] = row.split(" | ");
    const [weight, ...traits] = known.split(" ");
    const told = traits.map((trait) => trait.split("=")).map(([name, value]) => [name, value ? Number(value) : true]);
    // A test holds the kinds and the traits against the type.
    return { kind: kind as FindingCode, id, weight: Number(weight), pattern, ...Object.fromEntries(told) };
  });

/** Concepts that are made of others, beside their own words: "your hidden guidelines" is a prompt. No circles. */
const MADE = `
prompt = own 16 promptNoun/setupNoun; hiddenAdj 3 promptNoun; startOf 2 talkNoun; everyAll/promptNoun 10 youGot; youGot 8 promptNoun
yourPrompt = own 16 promptNoun/setupNoun; hiddenAdj 3 promptNoun
newTask = newAdj 3 taskNoun
yourNewTask = own 3 newAdj 3 taskNoun
onlyOutput = onlyWord 2 output; output 2 onlyWord; appendVerb 3 everyAnswer
replyOnly = onlyWord 2 replyVerb; replyVerb 2 onlyWord
stopTask = stopWord 2 doTask
noRefusal = not 8 refuseVerb
notTell = not 12 tellVerb
aboveText = everyAll 24 aboveWord; aboveFirst 8 everyAll
voided = not 12 validWord
modelMust = model 14 mustWord
taskDone = jobNoun 8 doneWord; doneWord 6 jobNoun
unbound/mode = withoutWord 8 limitNoun
`;

export const COMPOUNDS: readonly Pick<Rule, "id" | "pattern">[] = MADE.trim()
  .split("\n")
  .map((row) => row.split(" = "))
  .flatMap(([ids = "", pattern = ""]) => ids.split("/").map((id) => ({ id, pattern })));

/** Orders whose words are also recognised with one typing error, where the words around them are there. */
export const TYPO_WORDS = {
  drop: "ignore|disregard|override|forget|ignorier|ignoriere|vergessen|ignora|ignorate|oublie|oubliez|olvida|olvide|dimentica|esqueca|esquece|desconsidere|игнорируи|забудьте".split(
    "|",
  ),
  orders:
    "instructions|instruction|prompt|directives|guidelines|anweisungen|vorgaben|befehle|instrucciones|indicaciones|istruzioni|indicazioni|instrucoes|consignes|инструкции|указания|команды".split(
      "|",
    ),
};
