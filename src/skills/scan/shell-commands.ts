/** The commands of a line, split where a shell would split them. Works on prose too: a command in a sentence is found. */

export type Pipeline = readonly string[];

const MAX_COMMANDS = 200;

export function pipelines(plain: string): Pipeline[] {
  const found: Pipeline[] = [];
  for (const command of plain.split(/&&|;|\|\|/, MAX_COMMANDS)) {
    if (command.includes("|")) found.push(command.split("|", MAX_COMMANDS));
  }
  return found;
}

const BEFORE_PROGRAM =
  /^&?\s{0,40}["'`({]{0,3}\s{0,4}(?:(?:sudo|exec|command|nohup|time|env|doas|builtin|busybox|setsid|timeout|nice|arch)(?:\s{1,4}(?:-{1,2}[\w-]{1,30}(?:=\S{1,40})?|\w{1,30}=\S{0,80}|\d{1,6}[smh]?)){0,4}\s{1,4}){0,3}(?:\w{1,30}=\S{0,60}\s{1,4}){0,3}(?:[\w.~-]{0,40}\/){0,6}/;
const SHELL = /^(?:sh|bash|zsh|dash|ksh|ash|fish|cmd|cmd\.exe)(?=$|[\s"'`);&<>}*.,])/;
const LANGUAGE =
  /^(?:python[\d.]{0,4}|node|nodejs|deno|bun|perl|ruby|php|lua|osascript|pwsh|powershell(?:\.exe)?|tclsh)(?=$|[\s"'`);&<>}*.,])/;
const EXPRESSION = /^(?:iex|invoke-expression)(?=$|[\s"'`);&<>}*.,])/;

/** The command runs what it is given on its standard input; with a file or a `-c` that is data, not a program. */
export function runsItsInput(command: string): boolean {
  const rest = command.replace(BEFORE_PROGRAM, "");
  if (EXPRESSION.test(rest)) return true;
  if (/^xargs\b.{0,60}\b(?:ba|z|da)?sh\s{1,4}-c\b/.test(rest)) return true;
  const shell = SHELL.exec(rest);
  if (shell !== null) return takesNoFile(rest.slice(shell[0].length));
  const language = LANGUAGE.exec(rest);
  return (
    language !== null &&
    /^\s{0,4}(?:$|-(?:\s|$|["'`)])|-u\s{1,4}-|["'`);&<>}*]|-command\s{1,4}-|-noprofile\s{1,4}-\s)/.test(
      rest.slice(language[0].length),
    )
  );
}

function takesNoFile(options: string): boolean {
  const rest = options.replace(/^(?:\s{1,4}(?:--?(?!c\b)[a-z]{1,12}|\/dev\/stdin|\d?>{1,2}\s?\S{1,60}|2>&1)){0,6}/, "");
  if (/\s-[a-z]{0,3}s\b|\/dev\/stdin/.test(options.slice(0, 40))) return true;
  if (/^\s{1,4}-c\b/.test(rest)) return false;
  // In a sentence other words follow; a file's name has a dot, a slash or a variable in it.
  return !/^\s{1,4}[^\s"'`);&<>}]{0,80}[./$\\{]\w/.test(rest);
}

const FETCH =
  /(?:^|[\s"'`($&@/\\>!])(?:curl|wget|aria2c|iwr|irm|start-bitstransfer|invoke-webrequest|invoke-restmethod|lynx|httpie|axel)(?:\.exe)?\s{1,4}["'`$\\(<\w~./-]|downloadstring\s{0,3}\(|\bnet\.webclient\b|\bfetch\s{1,4}-o\s{0,3}-|\b(?:ftp|http)\s{1,4}-o\s{0,3}-/;

/** A function or a wrapper that is given an address; what only prints one fetches nothing. */
const GIVEN_ADDRESS =
  /^\s{0,8}(?!(?:echo|printf|cat|grep|sed|awk|open|xdg-open|start|git|#)\b)[a-z_][\w.-]{0,30}\s[^#]{0,120}https?:\/\//;

export function mayFetch(command: string): boolean {
  return fetches(command) || GIVEN_ADDRESS.test(command);
}

export function fetches(command: string): boolean {
  return FETCH.test(command);
}

const DECODE =
  /\bbase(?:64|32)\b.{0,60}\s(?:-d\w{0,2}|--decode)\b|\bbase64\s{1,3}-d\b|\bopenssl\s{1,4}(?:enc|base64|aes).{0,80}\s-d\b|\bxxd\b.{0,20}\s-r|\buudecode\b|\bb64decode\b|\bfrombase64string\b|\batob\(|\bhex2bin\b|\brot13\b|\bpack\s{0,2}\(?\s{0,2}["']?h\*/;
/** Weak disguises that honest commands do not use. */
const TURN = /^\s{0,4}(?:rev|tac)\s{0,4}["'`)]{0,2}$|^\s{0,4}tr\s{1,4}["']?(?:a-z|a-za-z|n-za-m|\[a-z)/;

export function decodes(command: string): boolean {
  return DECODE.test(command) || TURN.test(command);
}
