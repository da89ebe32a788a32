/** AWS Secrets Manager on the wire: JSON 1.1 with a target header, and requests that must be signed with version 4. */
import { type Answer, type Asked, HttpDouble } from "./http-double.ts";

const SIGNATURE =
  /^AWS4-HMAC-SHA256 Credential=([A-Z0-9]+)\/\d{8}\/([a-z0-9-]+)\/secretsmanager\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}$/;

export const AWS_KEY_ID = "AKIAIOSFODNN7EXAMPLE";

export class AwsSecretsManagerDouble extends HttpDouble {
  /** A text, or bytes for a binary secret. */
  readonly secrets = new Map<string, string | Uint8Array>();
  readonly regions: string[] = [];

  constructor() {
    super((asked) => this.#answer(asked));
  }

  #answer({ method, headers, body }: Asked): Answer {
    const [, key, region, signed = ""] = SIGNATURE.exec(headers.authorization ?? "") ?? [];
    if (method !== "POST" || headers["x-amz-target"] !== "secretsmanager.GetSecretValue")
      return fault("UnknownOperationException", "?");
    if (region === undefined || !signed.split(";").includes("x-amz-date"))
      return fault("MissingAuthenticationTokenException", "not signed");
    if (key !== AWS_KEY_ID)
      return fault("UnrecognizedClientException", "The security token included in the request is invalid.");
    this.regions.push(region);
    const { SecretId } = JSON.parse(body) as { SecretId: string };
    if (SecretId === "forbidden")
      return fault("AccessDeniedException", "User is not authorized to perform secretsmanager:GetSecretValue");
    const secret = this.secrets.get(SecretId);
    if (secret === undefined)
      return fault("ResourceNotFoundException", "Secrets Manager can't find the specified secret.");
    const value =
      typeof secret === "string" ? { SecretString: secret } : { SecretBinary: Buffer.from(secret).toString("base64") };
    return {
      status: 200,
      headers: { "Content-Type": "application/x-amz-json-1.1" },
      body: { ARN: "arn", Name: SecretId, VersionId: "v", ...value },
    };
  }
}

function fault(type: string, message: string): Answer {
  return {
    status: 400,
    headers: { "Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": type },
    body: { __type: type, Message: message, message },
  };
}
