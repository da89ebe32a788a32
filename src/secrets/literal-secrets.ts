import { type Resolved, Secrets } from "./secrets.ts";

/** Looks nothing up: for those who must not read this machine's environment by naming it. `$${` stands for `${`, as everywhere. */
export class LiteralSecrets extends Secrets {
  override resolve(text: string): Promise<Resolved> {
    return Promise.resolve({ value: text.replaceAll("$${", "${"), looked: [] });
  }
}
