/** The form that a reference to each provider has: where it ends inside a longer text, and what may stand in it. */

interface Form {
  /** As the documentation and messages write it. */
  readonly example: string;
  /** What a reference without `${…}` around it takes from the text; sticky. */
  readonly bare: RegExp;
  /** Whether `#` begins a field, a key or a version. */
  readonly hasField: boolean;
  readonly path: RegExp;
  readonly field?: RegExp;
}

/** Ends at white space, quotes and everything that closes or separates something in URLs, JSON, shells and headers. */
const BARE = /[^\s"'`,;<>()[\]{}|\\^$&?]*/y;
/** Control characters have no business in a name, and would forge lines in messages. */
// oxlint-disable-next-line no-control-regex
const ANY = /^[^\u0000-\u001f\u007f]+$/;
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const ENV_FORM: Form = { example: "secret://env/NAME", bare: /[A-Za-z0-9_]*/y, hasField: false, path: VARIABLE_NAME };

const FORMS: Readonly<Record<string, Form>> = {
  env: ENV_FORM,
  file: { example: "secret://file/path", bare: BARE, hasField: false, path: ANY },
  vault: {
    example: "secret://vault/mount/path#field",
    bare: BARE,
    hasField: true,
    // No empty, `.` or `..` part: a URL would swallow them and name another secret.
    path: /^(?!\.{1,2}(?:\/|$))[^/\s]+(?:\/(?!\.{1,2}(?:\/|$))[^/\s]+)+$/,
    field: ANY,
  },
  aws: {
    example: "secret://aws/name#jsonkey",
    bare: BARE,
    hasField: true,
    path: /^[A-Za-z0-9/_+=.@:][A-Za-z0-9/_+=.@:!-]*$/,
    field: ANY,
  },
  gcp: {
    example: "secret://gcp/[project/]name[#version]",
    bare: BARE,
    hasField: true,
    path: /^(?:[a-z0-9][a-z0-9.:-]*\/)?[A-Za-z0-9_][A-Za-z0-9_-]*$/,
    field: /^[A-Za-z0-9_][A-Za-z0-9_-]*$/,
  },
  // The last slash divides, because a service is often a URL.
  keychain: {
    example: "secret://keychain/service/account",
    bare: BARE,
    hasField: false,
    path: /^[^\u0000-\u001f\u007f-][^\u0000-\u001f\u007f]*\/[^/\u0000-\u001f\u007f-][^/\u0000-\u001f\u007f]*$/,
  }, // oxlint-disable-line no-control-regex
  exec: {
    example: "secret://exec/name[/argument]",
    bare: BARE,
    hasField: false,
    path: /^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[^-\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*)?$/,
  }, // oxlint-disable-line no-control-regex
  user: { ...ENV_FORM, example: "secret://user/NAME" },
  store: {
    example: "secret://store/name",
    bare: /[A-Za-z0-9_.@/-]*/y,
    hasField: false,
    path: /^[A-Za-z0-9_][A-Za-z0-9_.@-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.@-]*)*$/,
  },
};

export function formOf(provider: string): Form | undefined {
  return Object.hasOwn(FORMS, provider) ? FORMS[provider] : undefined;
}

export const PROVIDER_NAMES: readonly string[] = Object.keys(FORMS);
