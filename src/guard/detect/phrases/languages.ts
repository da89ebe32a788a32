/** The override phrases in other languages that use spaces, and the classes of words they need. */
import type { Lexicon } from "./book.ts";
import { table } from "./cue.ts";

export const LANGUAGE_LEXICON: Lexicon = {
  deCancel: "ignoriere ignorier ignorieren vergiss vergesse vergessen missachte missachten verwerfe verwirf",
  dePrior:
    "vorherigen vorherige bisherigen bisherige obigen obige früheren frühere vorigen vorangegangenen vorausgehenden deine deinen ihre alle allen sämtliche",
  deOrders: "anweisungen anweisung instruktionen befehle vorgaben regeln richtlinien systemprompt aufforderungen",
  frCancel: "ignore ignorez ignorer oublie oubliez oublier néglige négligez",
  frOrders: "instructions instruction consignes consigne directives règles ordres",
  frPrior: "précédentes précédente précédents antérieures antérieure ci-dessus dessus initiales système avant",
  esCancel: "ignora ignore ignorad olvida olvide olvidad descarta descarte",
  esOrders: "instrucciones instrucción órdenes indicaciones directrices reglas",
  esPrior: "anteriores anterior previas previa arriba iniciales sistema precedentes",
  itCancel: "ignora ignorate dimentica dimenticate scarta trascura",
  itOrders: "istruzioni istruzione direttive regole comandi indicazioni",
  itPrior: "precedenti precedente iniziali sopra sistema anteriori",
  ptCancel: "ignore ignora esqueça esquece desconsidere descarte",
  ptOrders: "instruções instrução diretrizes regras ordens comandos",
  ptPrior: "anteriores anterior prévias acima iniciais sistema",
  ruCancel: "игнорируй игнорируйте проигнорируй проигнорируйте забудь забудьте отбрось",
  ruPrior: "предыдущие предыдущих прошлые прежние вышеуказанные все свои",
  ruOrders: "инструкции указания команды правила директивы",
  nlCancel: "negeer vergeet",
  nlPrior: "vorige eerdere bovenstaande voorgaande alle",
  nlOrders: "instructies opdrachten regels aanwijzingen",
  plCancel: "zignoruj ignoruj zapomnij",
  plPrior: "poprzednie wcześniejsze powyższe wszystkie",
  plOrders: "instrukcje polecenia zasady",
  trPrior: "önceki yukarıdaki tüm bütün",
  trOrders: "talimatları talimatlari komutları yönergeleri",
};

const overrides = table({ kind: "override", code: "instruction_override", unlessNegated: true }, [
  [9, "@deCancel ~3 @dePrior ~3 @deOrders"],
  [9, "@frCancel ~4 @frOrders ~3 @frPrior"],
  [9, "@frCancel ~3 tes|vos|toutes ~2 @frOrders"],
  [9, "@esCancel ~4 @esOrders ~3 @esPrior"],
  [9, "@esCancel ~2 tus|sus|todas ~2 @esOrders"],
  [9, "@itCancel ~4 @itOrders ~3 @itPrior"],
  [9, "@itCancel ~2 tue|tutte ~2 @itOrders"],
  [9, "@ptCancel ~4 @ptOrders ~3 @ptPrior"],
  [9, "@ptCancel ~2 suas|todas ~2 @ptOrders"],
  [9, "@ruCancel ~2 @ruPrior ~2 @ruOrders"],
  [9, "@nlCancel ~2 @nlPrior ~2 @nlOrders"],
  [9, "@plCancel ~2 @plPrior ~2 @plOrders"],
  [9, "@trPrior ~2 @trOrders ~2 yok|unut|görmezden"],
]);

const secrecy = table({ kind: "secrecy", code: "concealment" }, [
  [4.5, "sage|sag|informiere|verrate ~3 nutzer|benutzer|anwender ~3 nichts|nicht"],
  [4.5, "ne|n'en dis|dites|parle|parlez|informe|informez ~4 utilisateur|l'utilisateur"],
  [4.5, "no ~1 digas|diga|informes|informe|menciones|cuentes ~4 usuario"],
  [4.5, "non dire|dirlo|informare|rivelare|menzionare ~3 utente|all'utente|l'utente"],
  [4.5, "não ~1 diga|conte|informe|mencione ~4 usuário|utilizador"],
  [4.5, "не говори|говорите|сообщай|сообщайте|рассказывай ~3 пользователю|об"],
]);

export const LANGUAGE_PHRASES = [...overrides, ...secrecy];
