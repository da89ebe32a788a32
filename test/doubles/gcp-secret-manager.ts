/** Google Secret Manager's REST API. Callers sign in with a token that they sign with their service account's own key. */
import { createVerify, generateKeyPairSync } from "node:crypto";
import { type Answer, type Asked, HttpDouble } from "./http-double.ts";

// Once for all tests of a file: making a key takes long.
const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });

export class GcpSecretManagerDouble extends HttpDouble {
  /** By `project/name/version`. */
  readonly secrets = new Map<string, string | Uint8Array>();
  /** A token of another kind that is let in too, for programs that do not sign. */
  accessToken: string | undefined;

  constructor() {
    super((asked) => this.#answer(asked));
  }

  /** What a key file of a service account holds. */
  static keyFile(project = "project-of-key"): string {
    return JSON.stringify({
      type: "service_account",
      project_id: project,
      private_key_id: "key-1",
      private_key: keys.privateKey.export({ type: "pkcs8", format: "pem" }),
      client_email: `test@${project}.iam.gserviceaccount.com`,
      client_id: "1",
      token_uri: "http://127.0.0.1:1/never",
    });
  }

  #answer({ method, path, headers }: Asked): Answer {
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
    if (token !== this.accessToken && !isSigned(token))
      return fault(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.");
    const [, project, name, version] =
      /^\/v1\/projects\/([^/]+)\/secrets\/([^/]+)\/versions\/([^/:]+):access(?:\?|$)/.exec(path) ?? [];
    if (method !== "GET" || project === undefined) return fault(404, "NOT_FOUND", "no such method");
    if (name === "forbidden")
      return fault(403, "PERMISSION_DENIED", "Permission 'secretmanager.versions.access' denied.");
    const secret = this.secrets.get(`${project}/${name}/${version}`);
    if (secret === undefined) return fault(404, "NOT_FOUND", `Secret [projects/${project}/secrets/${name}] not found.`);
    const data = Buffer.from(typeof secret === "string" ? Buffer.from(secret) : secret).toString("base64");
    return { status: 200, body: { name: `projects/1/secrets/${name}/versions/${version}`, payload: { data } } };
  }
}

function isSigned(token: string): boolean {
  const [header = "", claims = "", signature = ""] = token.split(".");
  return createVerify("RSA-SHA256").update(`${header}.${claims}`).verify(keys.publicKey, signature, "base64url");
}

function fault(code: number, status: string, message: string): Answer {
  return { status: code, body: { error: { code, status, message } } };
}
