/** Where a model is reached. Checked before a key is sent anywhere. */
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../model/loopback.ts";
import type { KnownProvider, Protocol } from "./providers.ts";

/**
 * The address without a slash at its end. One without a path gets the version that its protocol has there, because that is
 * how most people write it.
 */
export function modelAddress(text: string, protocol: Protocol): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new ToolcribError("invalid_config", "The model's baseUrl is not a valid http or https address.", {
      hint: "Write it in full, such as http://127.0.0.1:11434/v1.",
    });
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new ToolcribError("invalid_config", `The model's baseUrl at ${url.host} must be a plain address.`, {
      hint: "Leave out the user, the query and the fragment. Credentials belong in apiKey or headers, by reference.",
    });
  }
  const path = url.pathname.replace(/\/+$/, "");
  url.pathname = path === "" ? (protocol === "google" ? "/v1beta" : "/v1") : path;
  return url;
}

/** Whether a key may be sent there. */
export function isSafe(url: URL): boolean {
  return url.protocol === "https:" || isLoopback(url.hostname);
}

/** The provider's address, moved if its variable says so. */
export function providerAddress(provider: KnownProvider, env: NodeJS.ProcessEnv): URL {
  const variable = provider.addressVariable;
  const moved = variable === undefined ? undefined : env[variable]?.trim();
  if (variable === undefined || moved === undefined || moved === "") {
    return modelAddress(provider.baseUrl, provider.protocol);
  }
  try {
    return modelAddress(variable === "OLLAMA_HOST" ? ollamaAddress(moved) : moved, provider.protocol);
  } catch (error) {
    throw new ToolcribError("invalid_config", `${variable} is not an address that a model can be reached at.`, {
      hint: `Write it in full, such as ${provider.baseUrl}, or unset it.`,
      cause: error,
    });
  }
}

/** As Ollama reads it: scheme and port may be missing, and the address that a server listens on stands for this machine. */
function ollamaAddress(text: string): string {
  const hasScheme = /^https?:\/\//i.test(text);
  if (hasScheme && !URL.canParse(text)) return text;
  if (!hasScheme && !URL.canParse(`http://${text}`)) return text;
  const url = new URL(hasScheme ? text : `http://${text}`);
  if (!hasScheme && !/:\d+$/.test(text.replace(/\/.*$/, ""))) url.port = "11434";
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url.href;
}
