import { expect, it } from "vitest";
import { isPlainText, isCredentialName } from "../../src/secrets/credential-names.ts";

it.each([
  "TOKEN",
  "GITHUB_TOKEN",
  "githubToken",
  "GITHUBTOKEN",
  "API_KEY",
  "apiKey",
  "APIKEY",
  "X-API-Key",
  "OPENAI_KEY",
  "KEY",
  "SECRET",
  "clientSecret",
  "AWS_SECRET_ACCESS_KEY",
  "PASSWORD",
  "DB_PASS",
  "DB_PWD",
  "dbpassword",
  "PGPASSWORD",
  "Authorization",
  "Proxy-Authorization",
  "Cookie",
  "GITHUB_PAT",
  "X-Auth",
  "SSH_PASSPHRASE",
  "CREDENTIALS",
  "ACCESS_TOKENS",
  "API_KEYS",
  "Authorization-Bearer",
  "private_key",
])("[spine-06e] takes %s for a credential", (name) => {
  expect(isCredentialName(name)).toBe(true);
});

it.each([
  "MONKEY",
  "KEYBOARD_LAYOUT",
  "TOKENIZER_PATH",
  "PWD",
  "PATH",
  "MAX_TOKENS",
  "TOKEN_LIMIT",
  "TOKEN_URL",
  "PASSWORD_FILE",
  "KEY_FILE",
  "PUBLIC_KEY",
  "PRIMARY_KEY",
  "AUTHOR",
  "AUTH_MODE",
  "PASS_THROUGH",
  "COMPASS",
  "PATTERN",
  "SECRETARY",
  "TURKEY",
  "AWS_ACCESS_KEY_ID",
  "SECRET_NAME",
  "",
  "___",
  "LOG_LEVEL",
  "KEYS",
])("does not take %s for a credential", (name) => {
  expect(isCredentialName(name)).toBe(false);
});

it.each([
  ["ghp_abc", true],
  ["Bearer abc", true],
  ["", false],
  ["  ", false],
  ["${TOKEN}", false],
  ["Bearer ${TOKEN}", false],
  ["secret://env/X", false],
  ["true", false],
  ["1", false],
  ["Bearer", false],
  ["$${not-a-reference}", true],
])("judges the value %j as plain text: %s", (value, plain) => {
  expect(isPlainText(value)).toBe(plain);
});
