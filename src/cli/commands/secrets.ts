/** `toolcrib secrets check`, `toolcrib secrets set NAME` and `toolcrib secrets set store/NAME`. */
import { ToolcribError } from "../../model/errors.ts";
import type { StoredSecret } from "../../secrets/store-secret.ts";
import { writeReference } from "../../secrets/references.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { type CheckedReference, checkReferences } from "../secrets/check-references.ts";
import { openCommandHome, withStoredServers } from "../secrets/command-home.ts";
import { readSecret } from "../secrets/read-secret.ts";
import { storeSecret, storeUserSecret } from "../secrets/store-secret.ts";
import type { Column } from "../table.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** Before a name: sealed, in the store of the hub. */
const IN_STORE = "store/";

export async function run(invocation: Invocation): Promise<number> {
  const [action, name] = invocation.args;
  if (action === "check" && name === undefined) return check(invocation);
  if (action === "set") return set(invocation, name);
  throw new ToolcribError("invalid_arguments", "Say what to do: check, or set and a name.", {
    hint: "toolcrib secrets --help",
  });
}

async function check(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const config = await loadForCommand(invocation);
  const home = await openCommandHome(invocation, config, false);
  let checked: CheckedReference[];
  try {
    checked = await checkReferences(await withStoredServers(invocation, config, home), home.secrets);
  } finally {
    await home.close();
  }
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

async function set(invocation: Invocation, given: string | undefined): Promise<number> {
  const { args, flags, stdin, out, env } = invocation;
  if (args.length > 2) {
    throw new ToolcribError(
      "invalid_arguments",
      "The value does not belong on the command line, where others can see it.",
      {
        hint: "Leave it out and you are asked for it, or give it on stdin with --stdin.",
      },
    );
  }
  const isForStore = given?.startsWith(IN_STORE) === true;
  const name = isForStore ? given?.slice(IN_STORE.length) : given;
  // Not quoted: somebody may have written NAME=value.
  if (name === undefined || !NAME.test(name)) {
    throw new ToolcribError("invalid_arguments", "A secret has a name of letters, digits and _, up to 64 characters.", {
      hint: "toolcrib secrets set NAME asks for the value.",
    });
  }
  const user = flags.text("user");
  if (isForStore && user !== undefined) {
    throw new ToolcribError("invalid_arguments", "The store keeps no secrets of single users.", {
      hint: `toolcrib secrets set ${name} --user … keeps it in a file.`,
    });
  }
  const prompt = `Value of ${name} (it is not shown): `;
  const value = await readSecret(stdin, { fromPipe: flags.has("stdin"), prompt, prompts: out.prompts });
  const stored = isForStore
    ? await sealSecret(invocation, name, value)
    : user === undefined
      ? await storeSecret(name, value, env)
      : await storeUserSecret(user, name, value, env);
  if (out.json) {
    out.value({ name, ...stored });
    return 0;
  }
  if (stored.note !== undefined) out.note(stored.note);
  const place = stored.file ?? (stored.stored === "store" ? "the store, encrypted" : "the keychain");
  out.note(`Stored in ${place}. Write into the config:`);
  out.line(stored.reference);
  return 0;
}

type Sealed = Omit<StoredSecret, "stored"> & { readonly stored: "store" };

async function sealSecret(invocation: Invocation, name: string, value: string): Promise<Sealed> {
  invocation.out.redactor.addCredential(value);
  const home = await openCommandHome(invocation, await loadForCommand(invocation), true);
  try {
    if (home.sealed === undefined) throw new ToolcribError("invalid_config", "There is no store to keep it in.");
    await home.sealed.put(name, value);
    return { stored: "store", reference: writeReference("store", name) };
  } finally {
    await home.close();
  }
}
