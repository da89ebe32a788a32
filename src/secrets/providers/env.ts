import { SecretFailure, type SecretProvider } from "../provider.ts";

export const envProvider: SecretProvider = {
  name: "env",
  cached: false,
  async resolve({ path }, { env }) {
    const value = env[path];
    const hint = `Set ${path} in the environment that Toolcrib runs in.`;
    if (value === undefined) throw new SecretFailure("is not set", { hint });
    if (value === "") throw new SecretFailure("is empty", { hint });
    return value;
  },
};
