/** AWS Secrets Manager: `secret://aws/name#jsonkey`, by the AWS SDK if it is installed, else by the `aws` program. */
import { loadOptional } from "../../base/optional-package.ts";
import { isJsonObject, parseJsonObject } from "../../model/json.ts";
import {
  checkAddress,
  decodeSecret,
  jsonField,
  type ProviderContext,
  SecretFailure,
  type SecretProvider,
  askCloudProgram,
} from "../provider.ts";
import { systemErrorCode } from "../../model/errors.ts";

const PACKAGE = "@aws-sdk/client-secrets-manager";

type Sdk = Pick<typeof import("@aws-sdk/client-secrets-manager"), "SecretsManagerClient" | "GetSecretValueCommand">;

/** Faults of the service or the way to it, which pass. */
const PASSING = new Set([
  "InternalServiceError",
  "InternalServiceErrorException",
  "ThrottlingException",
  "TimeoutError",
  "RequestTimeout",
]);

/** @param load Stands in for the import in tests. */
export function awsProvider(
  load: () => Promise<Sdk> = () => import("@aws-sdk/client-secrets-manager"),
): SecretProvider {
  return {
    name: "aws",
    cached: true,
    async resolve({ path, field }, context) {
      const sdk = await loadOptional(PACKAGE, load);
      const text = sdk === undefined ? await askProgram(path, context) : await askSdk(sdk, path, context);
      const value = field === undefined ? text : jsonField(text, field);
      if (value === "") throw new SecretFailure("is empty");
      return value;
    },
  };
}

async function askSdk(sdk: Sdk, name: string, { env, signal, conceal }: ProviderContext): Promise<string> {
  const region = regionOf(name, env);
  const endpoint = env["AWS_ENDPOINT_URL_SECRETS_MANAGER"] || env["AWS_ENDPOINT_URL"];
  const [id, key, session] = [env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"]];
  for (const credential of [key, session]) if (credential) conceal(credential);
  // What is left out the SDK finds by itself: profiles, roles of the machine, sign-ins.
  const client = new sdk.SecretsManagerClient({
    maxAttempts: 2,
    ...(region ? { region } : {}),
    ...(endpoint ? { endpoint: checkAddress(endpoint, "the endpoint of AWS").href } : {}),
    ...(id && key
      ? { credentials: { accessKeyId: id, secretAccessKey: key, ...(session ? { sessionToken: session } : {}) } }
      : {}),
  });
  try {
    const answer = await client.send(new sdk.GetSecretValueCommand({ SecretId: name }), { abortSignal: signal });
    if (answer.SecretString !== undefined) return answer.SecretString;
    if (answer.SecretBinary !== undefined) return decodeSecret(answer.SecretBinary);
    throw new SecretFailure("is empty");
  } catch (error) {
    throw error instanceof SecretFailure ? error : refusal(error);
  } finally {
    client.destroy();
  }
}

function regionOf(name: string, env: NodeJS.ProcessEnv): string | undefined {
  return env["AWS_REGION"] || env["AWS_DEFAULT_REGION"] || /^arn:[^:]*:secretsmanager:([a-z0-9-]+):/.exec(name)?.[1];
}

function refusal(error: unknown): SecretFailure {
  const name = error instanceof Error ? error.name : "Error";
  if (name === "ResourceNotFoundException") {
    return new SecretFailure("is not in AWS Secrets Manager", {
      hint: "Check the name, the region and the account.",
      cause: error,
    });
  }
  const status = httpStatusOf(error);
  const isNetwork = /^E[A-Z]+$/.test(systemErrorCode(error) ?? "");
  const passing = PASSING.has(name) || isNetwork || (status !== undefined && status >= 500);
  const said =
    name === "SyntaxError" || !(error instanceof Error)
      ? "its answer cannot be read"
      : `${name}: ${error.message.slice(0, 200)}`;
  const isSetup = /Credentials|AccessDenied|UnrecognizedClient|Region/.test(said);
  const hint = isSetup ? "Check the AWS credentials, the region and the policy." : undefined;
  return new SecretFailure(`was not given by AWS: ${said}`, { passing, hint, cause: error });
}

function httpStatusOf(error: unknown): number | undefined {
  const metadata = error instanceof Error && "$metadata" in error ? error.$metadata : undefined;
  const status = isJsonObject(metadata) ? metadata["httpStatusCode"] : undefined;
  return typeof status === "number" ? status : undefined;
}

async function askProgram(name: string, context: ProviderContext): Promise<string> {
  // Version 1 of the program knows only AWS_DEFAULT_REGION.
  const region = regionOf(name, context.env);
  const args = [
    "secretsmanager",
    "get-secret-value",
    `--secret-id=${name}`,
    "--output=json",
    ...(region ? [`--region=${region}`] : []),
  ];
  const answer = parseJsonObject(
    await askCloudProgram("aws", args, context, { name: "the AWS SDK", package: PACKAGE }),
  );
  if (typeof answer?.["SecretString"] === "string") return answer["SecretString"];
  if (typeof answer?.["SecretBinary"] === "string") {
    return decodeSecret(Buffer.from(answer["SecretBinary"], "base64"));
  }
  throw new SecretFailure("was not given: the aws program's answer contains no secret");
}
