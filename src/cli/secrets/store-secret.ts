/** Stores a secret in the place that the environment of a command says. */
import { toolcribHome, userHome } from "../../config/find-config.ts";
import * as store from "../../secrets/store-secret.ts";

export function storeSecret(name: string, value: string, env: NodeJS.ProcessEnv): Promise<store.StoredSecret> {
  return store.storeSecret(name, value, placeOf(env));
}

export function storeUserSecret(
  user: string,
  name: string,
  value: string,
  env: NodeJS.ProcessEnv,
): Promise<store.StoredSecret> {
  return store.storeUserSecret(user, name, value, placeOf(env));
}

function placeOf(env: NodeJS.ProcessEnv): store.SecretPlace {
  return { env, home: toolcribHome(env), userHome: userHome(env) };
}
