import type { SecretProvider } from "../provider.ts";
import type { SealedSecrets } from "../sealed/sealed-secrets.ts";
import { awsProvider } from "./aws.ts";
import { envProvider } from "./env.ts";
import { execProvider } from "./exec.ts";
import { fileProvider } from "./file.ts";
import { gcpProvider } from "./gcp.ts";
import { keychainProvider } from "./keychain.ts";
import { storeProvider } from "./store.ts";
import { userProvider } from "./user.ts";
import { vaultProvider } from "./vault.ts";

export function allProviders(sealed: () => SealedSecrets | undefined): SecretProvider[] {
  return [
    envProvider,
    fileProvider,
    vaultProvider(),
    awsProvider(),
    gcpProvider(),
    keychainProvider(),
    execProvider,
    userProvider,
    storeProvider(sealed),
  ];
}
