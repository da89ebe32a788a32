/** `secret://store/name`: sealed in the store of the hub. */
import { SecretFailure, type SecretProvider } from "../provider.ts";
import type { SealedSecrets } from "../sealed/sealed-secrets.ts";

/** @param sealed Asked each time: the store is opened later than the first reference is looked up. */
export function storeProvider(sealed: () => SealedSecrets | undefined): SecretProvider {
  return {
    name: "store",
    cached: false,
    async resolve({ path }) {
      const secrets = sealed();
      if (secrets === undefined) {
        throw new SecretFailure("is in the store, and there is no store open here", {
          hint: "Only servers can have it, in a hub with a store.",
        });
      }
      return secrets.get(path);
    },
  };
}
