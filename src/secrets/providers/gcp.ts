/** Google Secret Manager: `secret://gcp/[project/]name[#version]`, by Google's library if it is installed, else by `gcloud`. */
import { loadOptional } from "../../base/optional-package.ts";
import {
  checkAddress,
  decodeSecret,
  MAX_SECRET_BYTES,
  type ProviderContext,
  SecretFailure,
  type SecretProvider,
  withoutFinalNewline,
  askCloudProgram,
} from "../provider.ts";

const PACKAGE = "@google-cloud/secret-manager";

type Sdk = Pick<typeof import("@google-cloud/secret-manager"), "SecretManagerServiceClient">;

interface Name {
  readonly project: string | undefined;
  readonly name: string;
  readonly version: string;
}

/** Statuses of gRPC that pass: DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE. */
const PASSING = new Set([4, 8, 13, 14]);
const NOT_FOUND = 5;
const REFUSED = new Set([7, 16]);

/** @param load Stands in for the import in tests. */
export function gcpProvider(load: () => Promise<Sdk> = () => import("@google-cloud/secret-manager")): SecretProvider {
  return {
    name: "gcp",
    cached: true,
    async resolve({ path, field }, context) {
      const slash = path.lastIndexOf("/");
      const { env } = context;
      const project =
        slash === -1
          ? env["GOOGLE_CLOUD_PROJECT"] || env["GCLOUD_PROJECT"] || env["CLOUDSDK_CORE_PROJECT"] || undefined
          : path.slice(0, slash);
      const name = { project, name: path.slice(slash + 1), version: field ?? "latest" };
      const sdk = await loadOptional(PACKAGE, load);
      const value = sdk === undefined ? await askProgram(name, context) : await askSdk(sdk, name, context);
      if (value === "") throw new SecretFailure("is empty");
      return value;
    },
  };
}

async function askSdk(sdk: Sdk, { project, name, version }: Name, { env, signal }: ProviderContext): Promise<string> {
  // Plain HTTP instead of gRPC: nothing is kept open, and proxies let it through.
  const client = new sdk.SecretManagerServiceClient({ fallback: "rest", ...endpointOf(env), ...credentialsOf(env) });
  const end = (): void => void client.close().catch(() => {});
  signal.addEventListener("abort", end, { once: true });
  try {
    const owner = project ?? (await client.getProjectId());
    const [answer] = await client.accessSecretVersion(
      { name: `projects/${owner}/secrets/${name}/versions/${version}` },
      { timeout: 10_000, maxRetries: 1 },
    );
    const data = answer.payload?.data;
    if (data === undefined || data === null) throw new SecretFailure("is empty");
    const bytes = typeof data === "string" ? Buffer.from(data, "base64") : data;
    if (bytes.length > MAX_SECRET_BYTES) throw new SecretFailure(`is larger than ${MAX_SECRET_BYTES / 1024} KiB`);
    return withoutFinalNewline(decodeSecret(bytes));
  } catch (error) {
    throw error instanceof SecretFailure ? error : refusal(error);
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

/** The variable that gcloud itself reads for the same purpose. */
function endpointOf(env: NodeJS.ProcessEnv): { apiEndpoint?: string; port?: number; protocol?: string } {
  const text = env["CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"];
  if (!text) return {};
  const { hostname, port, protocol } = checkAddress(text, "the endpoint of Google");
  const isPlain = protocol === "http:";
  return {
    apiEndpoint: hostname,
    port: port === "" ? (isPlain ? 80 : 443) : Number(port),
    protocol: isPlain ? "http" : "https",
  };
}

/** The library reads the variable of this process by itself, and prints a warning about the option. */
function credentialsOf(env: NodeJS.ProcessEnv): { keyFilename?: string } {
  const file = env["GOOGLE_APPLICATION_CREDENTIALS"];
  return file && file !== process.env["GOOGLE_APPLICATION_CREDENTIALS"] ? { keyFilename: file } : {};
}

function refusal(error: unknown): SecretFailure {
  const code = error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : undefined;
  if (code === NOT_FOUND) {
    return new SecretFailure("is not in Google Secret Manager", {
      hint: "Check project, name and version.",
      cause: error,
    });
  }
  const isRefused = code === undefined || REFUSED.has(code);
  const hint = isRefused ? "Check the Google credentials, the project and the role (secretAccessor)." : undefined;
  const message = error instanceof Error ? error.message : "an unknown fault";
  // A parser's message quotes what it could not read.
  const isUnreadable = error instanceof SyntaxError || /JSON|Unexpected token/.test(message);
  const said = isUnreadable ? "its answer cannot be read" : message.split("\n", 1)[0]?.slice(0, 200);
  const passing = code !== undefined && PASSING.has(code);
  return new SecretFailure(`was not given by Google: ${said}`, { passing, hint, cause: error });
}

async function askProgram({ project, name, version }: Name, context: ProviderContext): Promise<string> {
  const args = ["secrets", "versions", "access", version, `--secret=${name}`, "--quiet"];
  const all = project === undefined ? args : [...args, `--project=${project}`];
  const library = { name: "Google's library", package: PACKAGE };
  return withoutFinalNewline(await askCloudProgram("gcloud", all, context, library));
}
