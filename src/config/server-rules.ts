/** Rules for one server entry that no schema of single keys can say, and warnings about what is unwise in it. */
import { isLoopback } from "../model/loopback.ts";
import { cageImageOf } from "../model/sandbox.ts";
import type { ServerEntry } from "../model/server-spec.ts";
import { isPlainText, looksLikeCredential } from "../secrets/looks-like-secret.ts";
import { findReferences, type Reference } from "../secrets/references.ts";
import { cageProblems, cageWarnings } from "./cage-rules.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

const USE_A_REFERENCE = "use a reference such as ${NAME} or secret://env/NAME";

/** What makes the entry unusable. */
export function serverProblems(document: Document, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const wrong = (at: ConfigPath, message: string): void => {
    problems.push(document.report([...path, ...at], { severity: "error", code: "wrong_server", message }));
  };
  const { command, url, transport, isolation, replicas = 1 } = entry;
  // An image may know by itself what to run.
  const image = cageImageOf(entry.sandbox);
  if (command === undefined && url === undefined && image === undefined)
    wrong([], "found neither command nor url; allowed is exactly one of them");
  if (command !== undefined && url !== undefined)
    wrong([], "found both command and url; allowed is exactly one of them");
  if (command === undefined && url !== undefined && transport === "stdio") {
    wrong(["transport"], 'found "stdio" with a url; allowed is "http" or "sse"');
  }
  if (command !== undefined && url === undefined && transport !== undefined && transport !== servedBy(entry)) {
    wrong(["transport"], `found ${JSON.stringify(transport)} with a command; allowed is "${servedBy(entry)}"`);
  }
  // A url with references is judged when it is known, at connect time.
  if (url !== undefined && findReferences(url).length === 0 && !/^https?:\/\//i.test(url)) {
    wrong(["url"], "found a text that is no web address; allowed is https://…, or http://… on loopback");
  }
  if (replicas > 1 && isolation !== "shared" && url === undefined) {
    wrong(["replicas"], `found ${replicas} with isolation "${isolation}"; only a shared server has replicas`);
  }
  return [...problems, ...cageProblems(document, path, entry)];
}

/** How a program is talked to: a container may serve HTTP. */
function servedBy({ sandbox }: ServerEntry): "stdio" | "http" {
  return typeof sandbox === "object" && sandbox.port !== undefined ? "http" : "stdio";
}

/** What works and should be changed all the same. No message holds a value. */
export function serverWarnings(document: Document, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const warnings: Diagnostic[] = [];
  const warn = (at: ConfigPath, code: string, message: string, hint?: string): void => {
    warnings.push(document.report([...path, ...at], { severity: "warning", code, message, hint }));
  };

  for (const where of ["env", "headers"] as const) {
    for (const [key, value] of Object.entries(entry[where] ?? {})) {
      if (looksLikeCredential(key) && isPlainText(value)) {
        warn([where, key], "plain_credential", "a credential is written as plain text", USE_A_REFERENCE);
      }
    }
  }
  const auth = entry.auth;
  if (auth?.type === "bearer" && isPlainText(auth.token)) {
    warn(["auth", "token"], "plain_credential", "a credential is written as plain text", USE_A_REFERENCE);
  }
  if (auth?.type === "api-key" && isPlainText(auth.key)) {
    warn(["auth", "key"], "plain_credential", "a credential is written as plain text", USE_A_REFERENCE);
  }
  if (
    auth !== undefined &&
    "clientSecret" in auth &&
    auth.clientSecret !== undefined &&
    isPlainText(auth.clientSecret)
  ) {
    warn(["auth", "clientSecret"], "plain_credential", "a credential is written as plain text", USE_A_REFERENCE);
  }
  if (auth !== undefined && "clientSecret" in auth && auth.clientSecret !== undefined && !isBound(auth)) {
    const message = "the client secret goes to whichever authorization server this server names";
    warn(["auth"], "unbound_client_secret", message, "set auth.issuer");
  }
  for (const index of secretArguments(entry.args ?? [])) {
    const message = "a secret in args is visible to every user of the machine";
    warn(["args", index], "secret_in_args", message, "pass it in env if the server can read it there");
  }
  if (entry.url !== undefined) {
    if (holdsSecret(entry.url)) {
      const message = "a secret in a url ends up in logs of proxies and servers";
      warn(["url"], "secret_in_url", message, "pass it in headers or auth");
    }
    if (isPlainHttpElsewhere(entry.url) && entry.allowHttp !== true) {
      warn(["url"], "insecure_url", "http is refused for a host that is not loopback", "use https");
    }
  }
  const isRemote = entry.url !== undefined;
  const unused = isRemote ? (["args", "env", "cwd", "replicas"] as const) : (["headers", "auth", "allowHttp"] as const);
  for (const key of unused) {
    if (entry[key] === undefined) continue;
    warn([key], "unused_key", `${key} has no effect with ${isRemote ? "a url" : "a command"}`);
  }
  return [...warnings, ...cageWarnings(document, [...path, "sandbox"], entry.sandbox)];
}

/** Whether it is written down to whom a client's credentials may be sent. */
function isBound(auth: NonNullable<ServerEntry["auth"]>): boolean {
  return ("issuer" in auth && auth.issuer !== undefined) || ("tokenUrl" in auth && auth.tokenUrl !== undefined);
}

/** Arguments that hold a secret: by reference, or as the value of an option named like a credential. */
function secretArguments(args: readonly string[]): number[] {
  const found: number[] = [];
  for (const [index, arg] of args.entries()) {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (findReferences(arg).some(isSecretReference)) found.push(index);
    else if (option !== undefined && looksLikeCredential(option)) {
      const next = args[index + 1];
      if (value !== undefined && value !== "" && isPlainText(value)) found.push(index);
      else if (value === undefined && next !== undefined && !next.startsWith("-") && isPlainText(next))
        found.push(index + 1);
    }
  }
  return found;
}

function isSecretReference(reference: Reference): boolean {
  return reference.kind === "secret" || looksLikeCredential(reference.name);
}

/** Not with the URL class: the text may hold references, which are no URL syntax. */
function holdsSecret(url: string): boolean {
  if (/^[a-z]+:\/\/[^/?#\s]*:[^/?#\s]*@/i.test(url)) return true;
  const query = url.slice(url.indexOf("?") + 1);
  if (query === url) return findReferences(url).some(isSecretReference);
  const named = query.split(/[&#]/).some((pair) => {
    const [name = "", value = ""] = pair.split("=", 2);
    return value !== "" && looksLikeCredential(name);
  });
  return named || findReferences(url).some(isSecretReference);
}

/** A host that holds a reference is judged at connect time, when it is known. */
function isPlainHttpElsewhere(url: string): boolean {
  const [, host] = /^http:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(url) ?? [];
  if (host === undefined || findReferences(host).length > 0 || !URL.canParse(`http://${host}`)) return false;
  return !isLoopback(new URL(`http://${host}`).hostname);
}
