/** Secrets that are read and sent away: by one command, by several lines of a program, or by an instructed agent. */
import { type Address, addressesIn, isOutside, isSuspicious } from "../addresses.ts";
import { dataFlows } from "../data-flows.ts";
import { type Rule, type Sign } from "../rule.ts";
import { LINES_PER_SLICE, linesAround, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import { fetches } from "../shell-commands.ts";
import type { Subject } from "../subject.ts";

const HINT =
  /\.ssh|id_[rde*]|ssh keys?|credential|shadow|gnupg|login data|logins\.json|key4\.db|passwords?|keychain|mimikatz|secretsdump|lsass|vaultcmd|wallet|electrum|exodus|nkbih|bfnael|solana|keystore|phrase|mnemonic|words|environ|process\.env|printenv|\benv\b|export -p|declare -x|\.kube|gcloud|\.docker|\.netrc|\.npmrc|\.pypirc|cookies|_history|api[_ ]keys?|tokens?|auth|secrets|op read|pbpaste|xclip|\.env|display dialog/;

/** A dialog that imitates one of the system. */
const PASSWORD_DIALOG =
  /\bdisplay dialog\b.{0,200}\bhidden answer\b|\bget-credential\b.{0,200}\bgetnetworkcredential\b/;
const MAX_PROGRAM_ADDRESSES = 500;
const SEED_FILE = /\b(?:open|readfile\w{0,4}|read_text|cat)\b.{0,40}(?:seed|mnemonic|wallet)\.(?:txt|json|dat)/;
const READS = /\b(?:open|readfile\w{0,4}|read_text|read|cat|get-content|readalltext|path)\b/;
const READ_WORD =
  /\b(?:read|open|cat|copy|collect|gather|include|attach|grab|extract|get|retrieve|list|find|search|scan|look (?:for|in|up)|ask|request|prompt|obtain|take|dump|export|enter|provide|contents? of|paste|locate|harvest|check)\b/;
const SEND_WORD =
  /\b(?:send|post|upload|submit|transmit|forward|exfiltrate|deliver|report|sync|back ?up|append|pass|attach|embed|mail|e-?mail|include|push|relay|share|put|paste|enter|type|fill)(?:s|ing|ed)?\b/;
const CARRIER =
  /\b(?:parameter|argument|query string|url|request body|header|field|tool call|commit message|side ?note|endpoint|server|webhook|image link)\b/;
const MAILBOX = /[\w.+-]{1,60}@[\w-]{1,60}\.[a-z]{2}/;
/** Legitimate uses of the reader's own keys. */
const OWN_USE = /\b(?:your own|public key|\.pub\b|ssh-copy-id|ssh-add|ssh-keygen|settings page|dashboard|console)\b/;
const CARRYING_IMAGE =
  /!\[[^\]\n]{0,80}\]\(\s{0,2}https?:[^)\n]{1,200}[{$<[][^)\n]{0,80}(?:env|key|token|secret|passw|credential|conversation|history|context|message)/;
const GATHERED =
  /\b(?:read|collect|gather|find|search for|search|extract|copy|grab|scan for|look for|locate|harvest|dump|capture|record|save|store|log)\b[^.\n]{0,120}\b(?:passwords?|(?:access |api |auth |session )?tokens?|credentials?|api keys?|private keys?|ssh keys?|secrets|cookies|seed phrases?|key ?strokes)\b/;
const UNSEEN =
  /\b(?:never|do not|don'?t) (?:ever )?(?:mention|tell|inform|notify|disclose|reveal|show|report) (?:this|it|that|the user|users?|any(?:one|body)|the human|the owner|them)\b|\bwithout (?:the )?(?:user'?s? )?(?:telling|informing|notifying|knowing|noticing|knowledge|mentioning)|\b(?:secretly|covertly|unnoticed)\b|\bhidden (?:html )?comment\b|\bwithout the user\b/;
/** Secrets that no program should send: private keys, stored passwords, wallets, the whole environment. */
const HARD: readonly RegExp[] = [
  /\b(?:r?glob\w{0,6}|find|cat|tar|zip|cp|listdir|startswith|-name)\b.{0,40}["'\s/(]id_(?:\*|["'])(?!\.pub)/,
  /\.ssh["'\s,)]{0,6}[/\\,]{1,2}\s{0,2}["']?(?:id_\w{2,10}\b(?!\.pub)|\*|identity\b)|(?<![-\w])id_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub|_)|\b(?:ssh|private) keys?\b.{0,30}(?:~|\$home)\/\.ssh|(?:cat|tar|zip|cp|ls|find|glob\w{0,6}|walk|listdir|readdir\w{0,4}|rglob|iterdir)\b.{0,40}\.ssh\b(?!\/(?:config|known|\w{1,30}\.pub))/,
  /\.aws[/\\]+credentials|["']\.aws["'],\s{0,3}["']credentials["']/,
  /\.git-credentials|[/\\]etc[/\\]shadow\b|\.gnupg[/\\]?(?:private|secring)|["'/\\]\.gnupg\b.{0,60}(?:tar|zip|read)/,
  /\blogin data\b|\blogins\.json\b|\bkey4\.db\b|\bsaved passwords?\b.{0,60}\b(?:chrome|browser|firefox|edge)|\b(?:chrome|browser|firefox|edge|brave)\b.{0,60}\b(?:saved|stored) (?:passwords?|logins?|credentials)/,
  /\bsecurity\s{1,3}(?:dump-keychain|export\b)|\blogin\.keychain|\bmimikatz\b|\bsecretsdump\b|\blsass\b|\bvaultcmd\b|\bdump\w{0,4} (?:the )?(?:macos )?keychain/,
  /\bfind\b.{0,120}\.(?:pem|key|env|kdbx|p12|pfx|ppk)\b.{0,200}\||\bgrep\b.{0,60}(?:private key|password|secret|api_?key).{0,80}\s(?:~|\$home|\/home|\/users)\b/,
  /\b(?:tar|zip|7z|copytree|make_archive|cp -\w{0,3}r|compress-archive|rsync)\b.{0,120}(?:google[/\\]chrome|google-chrome|\.mozilla|firefox|keychains|bravesoftware|telegram desktop)/,
  /\bwallet\.dat\b|[/\\]\.?electrum[/\\]|\bexodus[/\\]|\bnkbihfbeogaeaoehlefnkodbefgpgknn\b|\bbfnaelmomeimhlpmgjnjophhpkkoljpa\b|\.config[/\\]solana[/\\]id\.json|\bkeystore[/\\]utc--|\b(?:metamask|phantom|exodus|ledger live|trust wallet)\b.{0,60}\b(?:vault|extension (?:data|storage|settings)|local extension)/,
];
const SEED =
  /\b(?:seed|recovery|secret|backup|mnemonic)[ _-]?(?:phrases?|words)\b|\b(?:12|24|twelve|twenty[- ]four)[- ]words? (?:\w{1,10} )?(?:phrase|seed|mnemonic)\b|\bmnemonic\b|\bwallet (?:private key|seed)\b|\bprivate keys?\b.{0,20}\bwallet\b/;
const WHOLE_ENVIRONMENT =
  /(?:^|[;&|(`"']|&&)\s{0,3}(?:printenv|env|export -p|declare -x)\s{0,3}\|(?!\s{0,3}(?:grep|sort|head|less|wc|cut|awk|sed)\b)|(?:\$\(|<\()\s{0,2}(?:printenv|env|export -p|declare -x)\s{0,2}(?:\)|\|)|(?:^|[;&|]\s{0,3})(?:printenv|env|export -p|declare -x)\s{0,3}>|\bdict\(\s{0,2}os\.environ|\bos\.environ\b(?!\s{0,2}[.[]|\.get|\.copy\(\))(?=\s{0,2}(?:\)|,|\}|$))|json\.dumps\(.{0,20}os\.environ|stringify\(\s{0,2}(?:\{.{0,60}?(?:\.\.\.|:\s{0,2}))?process\.env\b(?!\.)|\.\.\.process\.env\s{0,3}[,})].{0,40}(?:body|data)|(?:body|data|env|payload)\s{0,3}[:=]\s{0,3}process\.env\b(?!\.)|\benv\.to_(?:h|a|hash)\b|\benv\.toobject\(\)|\bsystem\.getenv\(\)|\bos\.environ\(\)|\benv::vars\(\)|\$_env\b(?!\[)|get-childitem\s{1,3}env:|\bdir env:|\[environment\]::getenvironmentvariables/;
/** Secrets that programs read for good reasons. */
const SOFT =
  /(?:^|[\s"'`/\\@(=<~*])\.env(?:\.(?:local|production|prod))?(?=$|[\s"'`),;|:])|\.kube[/\\]config|\.config[/\\]gcloud|application_default_credentials|\.docker[/\\]config\.json|\.netrc\b|\.npmrc\b|\.pypirc\b|\.(?:clawdbot|openclaw|moltbot|claude|codex|gemini)[/\\](?:\.?credentials\S{0,20}|\.env|auth\S{0,20}|config\.json|openclaw\.json|clawdbot\.json|\.credentials\.json)|\bcookies(?:\.sqlite|\.binarycookies)\b|\bfind-(?:generic|internet)-password\b|\.(?:bash|zsh)_history\b|\b(?:browser|session) cookies\b|\bgh auth token\b|\bgit credential fill\b|\baws configure get\b|\bprint-access-token\b|\bop read\b|\bpbpaste\b|\bxclip -o\b|\bapi[_ ]keys?\b|\benvironment variables\b|\baccess tokens?\b|\bcredentials?\b/;
/** Files after `-i` and the like only identify the caller. */
const IDENTITY =
  /\s-i\s{1,3}\S{1,100}|\bidentityfile\b\s{0,3}\S{1,100}|--(?:key|cert|netrc-file|identity\w{0,6}|private-key|env-file|env)[\s=]{1,3}\S{1,100}|(?:\s-h|--header|-headers?)\s{1,3}(?:"[^"\n]{0,300}"|'[^'\n]{0,300}')/g;
/** Keys of widely used services. */
const KNOWN_KEY =
  /\b(anthropic|openai|aws|github|gh|gitlab|stripe|slack|npm|azure|gemini|google|hf|huggingface|discord|telegram|twilio|sendgrid|cloudflare|vercel|supabase|heroku|digitalocean)_\w{0,30}(?:key|token|secret|password|pat)(?![a-z])/;
const SEND_COMMAND =
  /\bcurl\b.{0,300}\s(?:-d|--data\S{0,12}|-f|--form\S{0,8}|-t|--upload-file|-x\s{0,2}(?:post|put)|--request\s{1,3}(?:post|put)|--json|--get)\b|\|\s{0,3}curl\b|\bcurl\b.{0,200}\$\(|\bwget\b.{0,200}--(?:post-data|post-file|body-\w{4})|\|\s{0,3}(?:nc|ncat|netcat)\s|\b(?:nc|ncat|netcat)\s{1,3}[^|]{0,60}<|\b(?:scp|rsync|sftp)\b.{0,200}\s\S{1,60}[:@]\S|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b.{0,200}(?:-method\s{1,3}["']?(?:post|put)|-body|-infile)|\b(?:dig|nslookup|host|ping)\b.{0,60}\$\(|\|\s{0,3}(?:mail|sendmail|mutt)\b|\b(?:rclone|gsutil|aws s3)\b.{0,20}\b(?:copy|cp|sync|mv)\b|\bgh gist create\b|\bssh\b[^|]{0,100}<\s|\|\s{0,3}(?:openssl s_client|socat|telnet)\b|\buploadstring\(|\buploadfile\(|>\s{0,3}\/dev\/tcp\//;
const SEND_CODE =
  /\brequests\.(?:post|put|request|get)\(|\bhttpx\.(?:post|put|get)\(|\burlopen\(|\burllib\.request\.request\(|\bfetch\(|\baxios(?:\.(?:post|put|request|get))?\(|\bhttps?\.(?:request|get)\(|\b(?:session|client|s|http|conn|sess)\.(?:post|put|request)\(|\bsmtplib\b|\breq(?:uest)?\.(?:write|end)\(\s{0,2}\w|\.sendmail\(|\.send_message\(|\.sendall\(|\bsock\w{0,4}\.send\(|\bnet\.connect\(|\bxmlhttprequest\b|\.upload(?:string|file|data)\(|\bhttp\.client\b|\bnew websocket\(|\bnavigator\.sendbeacon\(|\bgot\.post\(|\bhttp\.post\(|\bnet::http\b|\bhttp\.newrequest\(|\breqwest::|\bhttpclient\b|\blwp::useragent\b|\bcurl_exec\(|\burlsession\b|\bnet\/http\b|\bdns\.(?:resolve|lookup)\w{0,4}\(|\bgethostbyname\(/;
export const credentialTheft: Rule = { hint: HINT, find: findCredentialTheft };

function* findCredentialTheft(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  const reported = new Set<ScannedLine>();
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    if (!HINT.test(line.text) && !HINT.test(line.plain)) continue;
    const sign =
      inCommand(line, subject) ??
      (text.kind === "instructions" && !line.fenced ? inWords(text, index, line, subject) : undefined);
    if (sign === undefined) continue;
    reported.add(line);
    yield sign;
  }
  yield* inProgram(text, subject, reported);
}

function inCommand(line: ScannedLine, subject: Subject): Sign | undefined {
  const { plain, text } = line;
  if (PASSWORD_DIALOG.test(text)) return theft(line, "A dialog asks for a password and gives it to the skill.", []);
  // Of the service whose key is on the line, outside of a header.
  const key = KNOWN_KEY.exec(withoutIdentity(text))?.[1];
  if (
    key !== undefined &&
    (sendsInCode(plain) || fetches(plain)) &&
    !/authorization|bearer|headers?\b|x-api-key/.test(plain)
  ) {
    const strange = addressesIn(plain).find((address) => isBad(address, subject) && !address.host.includes(key));
    if (strange !== undefined) return theft(line, `A key of ${key} is sent to ${strange.host}.`, [strange]);
  }
  if (!SEND_COMMAND.test(plain)) return undefined;
  const hard = hardSecretIn(plain) || hardSecretIn(text);
  if (!hard && !(softFileIn(plain) && /[@<|]|\$\(|`/.test(plain))) return undefined;
  const addresses = addressesIn(plain);
  if (addresses.length > 0 && !addresses.some(isOutside)) return undefined;
  const toSocket = /\|\s{0,3}(?:nc|ncat|netcat)\s|>\s{0,3}\/dev\/tcp\//.test(plain);
  if (!hard && !toSocket && !addresses.some((address) => isBad(address, subject))) return undefined;
  if (
    !hard &&
    !/\b(?:tar|zip|find|grep|cat)\b[^|]{0,120}\|[^|]{0,80}(?:\||curl|nc )/.test(plain) &&
    !/(?:@|cat |<\s?|\$\(|`)[^\s]{0,60}(?:\.env|config|credentials|auth|history|netrc|npmrc|cookies|credential|token|read|pbpaste|xclip)/.test(
      plain,
    )
  )
    return undefined;
  return theft(line, "One command reads a secret and sends it to another machine.", addresses);
}

function* inProgram(
  text: ScannedText,
  subject: Subject,
  reported: ReadonlySet<ScannedLine>,
): Generator<Sign | undefined> {
  if (text.kind === "data") return;
  const lines = text.kind === "script" ? text.lines : text.lines.filter(({ fenced }) => fenced);
  const addresses: Address[] = [];
  for (const { plain } of lines) {
    if (plain.includes("://") || /\d\.\d{1,3}\.\d/.test(plain)) addresses.push(...addressesIn(plain));
    if (addresses.length >= MAX_PROGRAM_ADDRESSES) break;
  }
  const isLocal = addresses.length > 0 && !addresses.some(isOutside);
  if (isLocal) return;
  const isRead = ({ text: words, plain }: ScannedLine): boolean =>
    (HINT.test(words) || HINT.test(plain)) && (hardSecretIn(words) || hardSecretIn(plain) || SEED_FILE.test(words));
  for (const { source, sink } of yield* dataFlows(lines, isRead, ({ plain }) => sendsInCode(plain))) {
    if (reported.has(sink)) continue;
    yield theft(sink, `A secret that is read on line ${source.number} is sent to another machine.`, addresses);
  }
  if (!addresses.some((address) => isBad(address, subject) && address.kind !== "unknown")) return;
  for (const { source, sink } of yield* dataFlows(
    lines,
    ({ text: words }) => softFileIn(words) && READS.test(words),
    ({ plain }) => sendsInCode(plain),
  )) {
    yield theft(
      sink,
      `A file of secrets that is read on line ${source.number} is sent to a suspicious place.`,
      addresses,
    );
  }
}

function isTakenUnseen(text: ScannedText, index: number, words: string): boolean {
  return GATHERED.test(words) && linesAround(text, index, 1, 2).some((near) => !near.fenced && UNSEEN.test(near.text));
}

function inWords(text: ScannedText, index: number, line: ScannedLine, subject: Subject): Sign | undefined {
  const words = line.text;
  const image = CARRYING_IMAGE.exec(words);
  if (image !== null) {
    const to = addressesIn(image[0]);
    if (to.some((address) => isBad(address, subject)))
      return theft(line, "The address of an image sends secrets out when the image is shown.", to);
  }
  if (isTakenUnseen(text, index, words))
    return theft(line, "The agent is instructed to gather secrets and to hide that it does.", []);
  const isHard = hardSecretIn(words);
  const isSeed = !isHard && SEED.test(words);
  const isSoft = !isHard && !isSeed && SOFT.test(withoutIdentity(words));
  if (!isHard && !isSeed && !isSoft) return undefined;
  const near = linesAround(text, index, isHard ? 1 : 0, isHard ? 3 : 2).filter(
    ({ fenced, frontmatter }) => !fenced && frontmatter === line.frontmatter,
  );
  const all = near.map(({ text: other }) => other).join(" ");
  if (!READ_WORD.test(all) || !SEND_WORD.test(all) || OWN_USE.test(words)) return undefined;
  const addresses = near.flatMap(({ text: other }) => addressesIn(other)).filter((address) => isOutside(address));
  const bad = addresses.some((address) => isBad(address, subject));
  if (isSoft) {
    const isSuspiciousTarget = addresses.some((address) => address.kind !== "unknown" && isBad(address, subject));
    if (!isSuspiciousTarget || !/\b(?:all|any|every|contents?|values?|user'?s|full)\b/.test(words)) return undefined;
  } else if (isSeed) {
    if (!bad && !MAILBOX.test(all)) return undefined;
    if (!/\b(?:ask|request|prompt|require|collect|obtain|get|enter|provide|paste)\b/.test(words)) return undefined;
  } else if (addresses.length > 0) {
    if (!bad) return undefined;
  } else if (!MAILBOX.test(all) && !CARRIER.test(all)) {
    return undefined;
  }
  return theft(
    line,
    isSeed
      ? "The agent is instructed to ask for the seed phrase of a wallet and to pass it on."
      : "The agent is instructed to read secrets and to pass them on.",
    addresses,
  );
}

function isBad(address: Address, subject: Subject): boolean {
  if (
    isSuspicious(address) ||
    address.kind === "paste" ||
    /\/api\/webhooks\/|\/bot\d{3,}:|hooks\.slack\.com/.test(address.url)
  )
    return true;
  return (
    isOutside(address) &&
    (address.plainHttp || ((address.kind === "unknown" || address.kind === "free page") && !subject.isOwn(address)))
  );
}

function theft(line: ScannedLine, message: string, addresses: readonly Address[]): Sign {
  return {
    code: "credential_theft",
    severity: "refuse",
    message,
    line,
    concrete: addresses.some(({ kind }) => kind === "number" || kind === "unknown" || kind === "drop"),
  };
}

// Where machines keep secrets, and how data leaves a machine. The patterns expect normalised lines.

function hardSecretIn(line: string): boolean {
  const text = withoutIdentity(line);
  return HARD.some((pattern) => pattern.test(text)) || WHOLE_ENVIRONMENT.test(text);
}

/** Whether the line names a file or store of secrets, not just the word. */
function softFileIn(line: string): boolean {
  return /[./\\_-]/.test(SOFT.exec(withoutIdentity(line))?.[0] ?? "");
}

function withoutIdentity(line: string): string {
  return line.includes("-") || line.includes("identityfile") ? line.replace(IDENTITY, " ") : line;
}

function sendsInCode(plain: string): boolean {
  return SEND_CODE.test(plain) || SEND_COMMAND.test(plain);
}
