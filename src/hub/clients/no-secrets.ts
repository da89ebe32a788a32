/** Keeps secrets, and references that only Toolcrib can read, out of other programs' files. */
import type { AgentClient, WrittenServer } from "../../clients/agent-client.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isPlainText, isCredentialName, passwordIn } from "../../secrets/credential-names.ts";
import { maskTokens } from "../../secrets/mask.ts";

/** Throws `invalid_arguments` that names the server and the place, never the value. */
export function assertNoSecrets(client: AgentClient, id: string, server: WrittenServer): void {
  for (const { place, key, text } of textsOf(server)) {
    const wrong = credentialProblem(client, key, text);
    if (wrong === undefined) continue;
    throw new ToolcribError("invalid_arguments", `${id}: ${place} ${wrong}. ${client.name}'s file was not changed.`, {
      hint:
        "url" in server
          ? `Leave it out, and enter it in ${client.name} itself.`
          : `Store the secret in Toolcrib, and let ${client.name} start the server with \`toolcrib mcp --server ${id}\`.`,
    });
  }
}

function credentialProblem(client: AgentClient, key: string | undefined, text: string): string | undefined {
  if (/secret:\/\//i.test(text)) return "contains a secret:// reference, which only Toolcrib can read";
  if (key !== undefined && isCredentialName(key) && isPlainText(text) && !isClientReference(client, text)) {
    return "is a credential in plain text";
  }
  const password = passwordIn(text);
  if (isPlainText(password) && !isClientReference(client, password)) return "contains a password in plain text";
  // A path may look like anything.
  return /[/\\]/.test(text) || maskTokens(text) === text ? undefined : "looks like a credential in plain text";
}

/** `${env:NAME}` in the client's own syntax. */
function isClientReference({ envReference }: AgentClient, text: string): boolean {
  if (envReference === undefined) return false;
  const [before = "", after = ""] = envReference("\0").split("\0");
  const start = text.indexOf(before);
  if (start === -1) return false;
  const rest = text.slice(start + before.length);
  const [name = ""] = /^[A-Za-z_]\w*/.exec(rest) ?? [];
  return name !== "" && rest.slice(name.length).startsWith(after);
}

interface LocatedText {
  readonly place: string;
  /** The name that says what the text is. */
  readonly key?: string;
  readonly text: string;
}

function textsOf(server: WrittenServer): LocatedText[] {
  if ("url" in server) return [...urlTexts(server.url), ...recordTexts("headers", server.headers)];
  return [
    { place: "command", text: server.command },
    ...argumentTexts(server.args),
    ...recordTexts("env", server.env),
    ...(server.cwd === undefined ? [] : [{ place: "cwd", text: server.cwd }]),
  ];
}

function recordTexts(place: string, record: Readonly<Record<string, string>> = {}): LocatedText[] {
  return Object.entries(record).map(([key, text]) => ({ place: `${place}.${key}`, key, text }));
}

/** `--token=x`, `--token x`, and `Name: x` as programs take headers on the command line. */
function argumentTexts(args: readonly string[]): LocatedText[] {
  return args.flatMap((text, index): LocatedText[] => {
    const place = `args[${index}]`;
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(text) ?? [];
    const [, header, headerValue] = /^([A-Za-z][\w-]*):(?!\/\/)\s*(.+)$/s.exec(text) ?? [];
    const next = args[index + 1];
    if (option !== undefined && value !== undefined) return [{ place, key: option, text: value }];
    if (header !== undefined && headerValue !== undefined) return [{ place, key: header, text: headerValue }];
    if (option !== undefined && next !== undefined && !next.startsWith("-")) {
      return [{ place: `args[${index + 1}]`, key: option, text: next }];
    }
    return [{ place, text }];
  });
}

function urlTexts(url: string): LocatedText[] {
  const texts: LocatedText[] = [{ place: "url", text: url }];
  if (!URL.canParse(url)) return texts;
  const { username, password, searchParams } = new URL(url);
  // A name alone may be a token as well.
  if (username + password !== "") texts.push({ place: "url", key: "password", text: password || username });
  for (const [key, text] of searchParams) texts.push({ place: `url?${key}`, key, text });
  return texts;
}
