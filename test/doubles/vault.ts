/** Vault as its HTTP API shows it: key-value engines of both versions, AppRole, namespaces, tokens. */
import { type Answer, type Asked, HttpDouble } from "./http-double.ts";

export class VaultDouble extends HttpDouble {
  /** By mount and path, such as `kv/app`; the fields of a key-value engine of version 2. */
  readonly secrets = new Map<string, Record<string, unknown> | "deleted">();
  /** The same in version 1, where the path has no `data/`. */
  readonly secretsOfVersion1 = new Map<string, Record<string, unknown>>();
  readonly tokens = new Set(["vault-token-of-test"]);
  namespace: string | undefined;
  logins = 0;

  constructor() {
    super((asked) => this.#answer(asked));
  }

  #answer(asked: Asked): Answer {
    const path = decodeURIComponent(asked.path.replace(/^\/v1\//, ""));
    if (path === "auth/approle/login") return this.#logIn(asked);
    if (!this.tokens.has(String(asked.headers["x-vault-token"]))) return denied();
    if (asked.headers["x-vault-namespace"] !== this.namespace) return denied();
    const [, mount = "", name = ""] = /^([^/]+)\/data\/(.+)$/.exec(path) ?? [];
    const secret = this.secrets.get(`${mount}/${name}`);
    if (secret === "deleted") {
      return {
        status: 404,
        body: { data: { data: null, metadata: { deletion_time: "2026-01-01T00:00:00Z", version: 2 } } },
      };
    }
    if (secret !== undefined) {
      const metadata = { created_time: "2026-01-01T00:00:00Z", destroyed: false, version: 1 };
      return { status: 200, body: { request_id: "r", lease_duration: 0, data: { data: secret, metadata } } };
    }
    const old = this.secretsOfVersion1.get(path);
    if (old !== undefined) return { status: 200, body: { request_id: "r", lease_duration: 2764800, data: old } };
    return { status: 404, body: { errors: [] } };
  }

  #logIn({ method, body }: Asked): Answer {
    this.logins++;
    const given: unknown = JSON.parse(body);
    const isRight =
      JSON.stringify(given) === JSON.stringify({ role_id: "role-of-test", secret_id: "secret-id-of-test" });
    if (method !== "POST" || !isRight) return { status: 400, body: { errors: ["invalid role or secret ID"] } };
    const token = `hvs.approle-token-${this.logins}`;
    this.tokens.add(token);
    return { status: 200, body: { auth: { client_token: token, lease_duration: 3600 } } };
  }
}

function denied(): Answer {
  return { status: 403, body: { errors: ["1 error occurred:\n\t* permission denied\n\n"] } };
}
