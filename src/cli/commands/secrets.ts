/** `toolcrib secrets check` and `toolcrib secrets set NAME`. */
import { toolcribHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { Secrets } from "../../secrets/secrets.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { type CheckedReference, checkReferences } from "../secrets/check-references.ts";
import { readSecret } from "../secrets/read-secret.ts";
import { storeSecret, storeUserSecret } from "../secrets/store-secret.ts";
import type { Column } from "../table.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export async function run(invocation: Invocation): Promise<number> {
  const [action, name] = invocation.args;
  if (action === "check" && name === undefined) return check(invocation);
  if (action === "set") return set(invocation, name);
  throw new ToolcribError("invalid_arguments", "Say what to do: check, or set and a name.", {
    hint: "toolcrib secrets --help",
  });
}

async function check(invocation: Invocation): Promise<number> {
  const { out, env } = invocation;
  const config = await loadForCommand(invocation);
  const { exec, cacheSeconds } = config.config.secrets;
  const secrets = new Secrets({ env, home: toolcribHome(env), exec, cacheSeconds });
  const checked = await checkReferences(config, secrets);
  if (out.json) out.value(checked);
  else if (checked.length === 0) out.note("The config holds no references.");
  else out.table(COLUMNS, checked);
  const missing = checked.filter(({ found }) => found === false);
  if (!out.json) for (const { reference, hint } of missing) if (hint !== undefined) out.note(`${reference}: ${hint}`);
  return missing.length === 0 ? 0 : 1;
}

const COLUMNS: readonly Column<CheckedReference>[] = [
  { title: "REFERENCE", cell: ({ reference }) => reference },
  { title: "PROVIDER", cell: ({ provider }) => provider },
  { title: "FOUND", cell: ({ found }) => (found === null ? "per user" : found ? "yes" : "no") },
  { title: "LENGTH", cell: ({ length }) => (length === undefined ? "-" : String(length)) },
  { title: "USED IN", cell: ({ usedIn }) => usedIn.join(", "), shrink: true },
  { title: "REASON", cell: ({ found, reason }) => (found === false ? (reason ?? "") : ""), shrink: true },
];

async function set({ args, flags, stdin, out, env }: Invocation, name: string | undefined): Promise<number> {
  if (args.length > 2) {
    throw new ToolcribError(
      "invalid_arguments",
      "The value does not belong on the command line, where others can see it.",
      {
        hint: "Leave it out and you are asked for it, or give it on stdin with --stdin.",
      },
    );
  }
  // Not quoted: somebody may have written NAME=value.
  if (name === undefined || !NAME.test(name)) {
    throw new ToolcribError("invalid_arguments", "A secret has a name of letters, digits and _, up to 64 characters.", {
      hint: "toolcrib secrets set NAME asks for the value.",
    });
  }
  const user = flags.text("user");
  const prompt = `Value of ${name} (it is not shown): `;
  const value = await readSecret(stdin, { fromPipe: flags.has("stdin"), prompt, prompts: out.prompts });
  const stored =
    user === undefined ? await storeSecret(name, value, env) : await storeUserSecret(user, name, value, env);
  if (out.json) {
    out.value({ name, ...stored });
    return 0;
  }
  if (stored.note !== undefined) out.note(stored.note);
  out.note(
    stored.file === undefined
      ? `Stored in the keychain. Write into the config:`
      : `Stored in ${stored.file}. Write into the config:`,
  );
  out.line(stored.reference);
  return 0;
}
