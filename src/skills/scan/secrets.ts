/** Where secrets lie on people's machines, and the ways in which things leave one. Tests read folded lines. */

/** What nobody hands out: private keys, stored passwords, wallets, the whole environment. */
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
export const SEED =
  /\b(?:seed|recovery|secret|backup|mnemonic)[ _-]?(?:phrases?|words)\b|\b(?:12|24|twelve|twenty[- ]four)[- ]words? (?:\w{1,10} )?(?:phrase|seed|mnemonic)\b|\bmnemonic\b|\bwallet (?:private key|seed)\b|\bprivate keys?\b.{0,20}\bwallet\b/;
const WHOLE_ENVIRONMENT =
  /(?:^|[;&|(`"']|&&)\s{0,3}(?:printenv|env|export -p|declare -x)\s{0,3}\|(?!\s{0,3}(?:grep|sort|head|less|wc|cut|awk|sed)\b)|(?:\$\(|<\()\s{0,2}(?:printenv|env|export -p|declare -x)\s{0,2}(?:\)|\|)|(?:^|[;&|]\s{0,3})(?:printenv|env|export -p|declare -x)\s{0,3}>|\bdict\(\s{0,2}os\.environ|\bos\.environ\b(?!\s{0,2}[.[]|\.get|\.copy\(\))(?=\s{0,2}(?:\)|,|\}|$))|json\.dumps\(.{0,20}os\.environ|stringify\(\s{0,2}(?:\{.{0,60}?(?:\.\.\.|:\s{0,2}))?process\.env\b(?!\.)|\.\.\.process\.env\s{0,3}[,})].{0,40}(?:body|data)|(?:body|data|env|payload)\s{0,3}[:=]\s{0,3}process\.env\b(?!\.)|\benv\.to_(?:h|a|hash)\b|\benv\.toobject\(\)|\bsystem\.getenv\(\)|\bos\.environ\(\)|\benv::vars\(\)|\$_env\b(?!\[)|get-childitem\s{1,3}env:|\bdir env:|\[environment\]::getenvironmentvariables/;

/** What programs read for good reasons, to use it where it belongs. */
const SOFT =
  /(?:^|[\s"'`/\\@(=<~*])\.env(?:\.(?:local|production|prod))?(?=$|[\s"'`),;|:])|\.kube[/\\]config|\.config[/\\]gcloud|application_default_credentials|\.docker[/\\]config\.json|\.netrc\b|\.npmrc\b|\.pypirc\b|\.(?:clawdbot|openclaw|moltbot|claude|codex|gemini)[/\\](?:\.?credentials\S{0,20}|\.env|auth\S{0,20}|config\.json|openclaw\.json|clawdbot\.json|\.credentials\.json)|\bcookies(?:\.sqlite|\.binarycookies)\b|\bfind-(?:generic|internet)-password\b|\.(?:bash|zsh)_history\b|\b(?:browser|session) cookies\b|\bgh auth token\b|\bgit credential fill\b|\baws configure get\b|\bprint-access-token\b|\bop read\b|\bpbpaste\b|\bxclip -o\b|\bapi[_ ]keys?\b|\benvironment variables\b|\baccess tokens?\b|\bcredentials?\b/;

/** Files whose path or name follows `-i` or the like only prove who asks. */
const IDENTITY =
  /\s-i\s{1,3}\S{1,100}|\bidentityfile\b\s{0,3}\S{1,100}|--(?:key|cert|netrc-file|identity\w{0,6}|private-key|env-file|env)[\s=]{1,3}\S{1,100}|(?:\s-h|--header|-headers?)\s{1,3}(?:"[^"\n]{0,300}"|'[^'\n]{0,300}')/g;

export function hardSecretIn(line: string): boolean {
  const text = withoutIdentity(line);
  return HARD.some((pattern) => pattern.test(text)) || WHOLE_ENVIRONMENT.test(text);
}

export function softSecretIn(line: string): boolean {
  return SOFT.test(withoutIdentity(line));
}

/** Keys of services that everybody has an account with. */
const KNOWN_KEY =
  /\b(anthropic|openai|aws|github|gh|gitlab|stripe|slack|npm|azure|gemini|google|hf|huggingface|discord|telegram|twilio|sendgrid|cloudflare|vercel|supabase|heroku|digitalocean)_\w{0,30}(?:key|token|secret|password|pat)(?![a-z])/;

/** The service whose key stands on the line, outside of a header. */
export function knownKeyIn(line: string): string | undefined {
  return KNOWN_KEY.exec(withoutIdentity(line))?.[1];
}

/** A file or a store that holds secrets, rather than the word. */
export function softFileIn(line: string): boolean {
  return /[./\\_-]/.test(SOFT.exec(withoutIdentity(line))?.[0] ?? "");
}

function withoutIdentity(line: string): string {
  return line.includes("-") || line.includes("identityfile") ? line.replace(IDENTITY, " ") : line;
}

const SEND_COMMAND =
  /\bcurl\b.{0,300}\s(?:-d|--data\S{0,12}|-f|--form\S{0,8}|-t|--upload-file|-x\s{0,2}(?:post|put)|--request\s{1,3}(?:post|put)|--json|--get)\b|\|\s{0,3}curl\b|\bcurl\b.{0,200}\$\(|\bwget\b.{0,200}--(?:post-data|post-file|body-\w{4})|\|\s{0,3}(?:nc|ncat|netcat)\s|\b(?:nc|ncat|netcat)\s{1,3}[^|]{0,60}<|\b(?:scp|rsync|sftp)\b.{0,200}\s\S{1,60}[:@]\S|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b.{0,200}(?:-method\s{1,3}["']?(?:post|put)|-body|-infile)|\b(?:dig|nslookup|host|ping)\b.{0,60}\$\(|\|\s{0,3}(?:mail|sendmail|mutt)\b|\b(?:rclone|gsutil|aws s3)\b.{0,20}\b(?:copy|cp|sync|mv)\b|\bgh gist create\b|\bssh\b[^|]{0,100}<\s|\|\s{0,3}(?:openssl s_client|socat|telnet)\b|\buploadstring\(|\buploadfile\(|>\s{0,3}\/dev\/tcp\//;
const SEND_CODE =
  /\brequests\.(?:post|put|request|get)\(|\bhttpx\.(?:post|put|get)\(|\burlopen\(|\burllib\.request\.request\(|\bfetch\(|\baxios(?:\.(?:post|put|request|get))?\(|\bhttps?\.(?:request|get)\(|\b(?:session|client|s|http|conn|sess)\.(?:post|put|request)\(|\bsmtplib\b|\breq(?:uest)?\.(?:write|end)\(\s{0,2}\w|\.sendmail\(|\.send_message\(|\.sendall\(|\bsock\w{0,4}\.send\(|\bnet\.connect\(|\bxmlhttprequest\b|\.upload(?:string|file|data)\(|\bhttp\.client\b|\bnew websocket\(|\bnavigator\.sendbeacon\(|\bgot\.post\(|\bhttp\.post\(|\bnet::http\b|\bhttp\.newrequest\(|\breqwest::|\bhttpclient\b|\blwp::useragent\b|\bcurl_exec\(|\burlsession\b|\bnet\/http\b|\bdns\.(?:resolve|lookup)\w{0,4}\(|\bgethostbyname\(/;

export function sendsInCommand(plain: string): boolean {
  return SEND_COMMAND.test(plain);
}

export function sendsInCode(plain: string): boolean {
  return SEND_CODE.test(plain) || SEND_COMMAND.test(plain);
}
