/** The real SDKs of AWS and Google against doubles on the wire, and their programs where there is no SDK. */
import { execFileSync } from "node:child_process";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { SecretProvider } from "../../../src/secrets/provider.ts";
import { awsProvider } from "../../../src/secrets/providers/aws.ts";
import { gcpProvider } from "../../../src/secrets/providers/gcp.ts";
import { AWS_KEY_ID, AwsSecretsManagerDouble } from "../../doubles/aws-secrets-manager.ts";
import { GcpSecretManagerDouble } from "../../doubles/gcp-secret-manager.ts";
import { ILLS } from "../../doubles/http-double.ts";
import { failureOf, Place } from "../support.ts";
import { isMissing } from "../../support/skips.ts";
import { eventually } from "../../support/eventually.ts";

/** What Node throws for a package that is not installed. */
function notInstalled(name: string): () => Promise<never> {
  const error = Object.assign(new Error(`Cannot find package '${name}' imported from /x`), {
    code: "ERR_MODULE_NOT_FOUND",
  });
  return () => Promise.reject(error);
}

const withoutSdk: SecretProvider[] = [
  awsProvider(notInstalled("@aws-sdk/client-secrets-manager")),
  gcpProvider(notInstalled("@google-cloud/secret-manager")),
];

async function aws(): Promise<{ double: AwsSecretsManagerDouble; place: Place; env: NodeJS.ProcessEnv }> {
  const double = await new AwsSecretsManagerDouble().start();
  double.secrets.set("prod/db", JSON.stringify({ user: "ana", password: "p-aws", port: 5432 }));
  double.secrets.set("plain", "just text");
  double.secrets.set("binary", Buffer.from("bytes as text"));
  const env = {
    AWS_ENDPOINT_URL_SECRETS_MANAGER: double.url,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: AWS_KEY_ID,
    AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  };
  return { double, place: new Place(), env };
}

async function gcp(): Promise<{ double: GcpSecretManagerDouble; place: Place; env: NodeJS.ProcessEnv }> {
  const double = await new GcpSecretManagerDouble().start();
  double.secrets.set("project-a/token/latest", "t-gcp\n");
  double.secrets.set("project-a/token/7", "t-seven");
  double.secrets.set("project-of-key/token/latest", "t-of-key");
  double.secrets.set("project-a/binary/latest", Buffer.from([0xff, 0xfe]));
  const place = new Place();
  const key = place.write("key.json", GcpSecretManagerDouble.keyFile());
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", key);
  onTestFinished(() => void vi.unstubAllEnvs());
  const env = { CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER: `${double.url}/`, GOOGLE_APPLICATION_CREDENTIALS: key };
  return { double, place, env };
}

describe("[guard-09] secret://aws with the real SDK", () => {
  it("signs the request and reads text, a key of JSON, and bytes", async () => {
    const { double, place, env } = await aws();
    expect(await place.value("secret://aws/plain", env)).toBe("just text");
    expect(await place.value("secret://aws/prod/db#password", env)).toBe("p-aws");
    expect(await place.value("secret://aws/prod/db#port", env)).toBe("5432");
    expect(await place.value("secret://aws/binary", env)).toBe("bytes as text");
    expect(double.regions[0]).toBe("eu-central-1");
    expect(double.asked[0]?.headers["authorization"]).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIA/);
  });

  it("takes the region from an ARN where none is set", async () => {
    const { double, place, env } = await aws();
    const arn = "arn:aws:secretsmanager:ap-south-1:123456789012:secret:plain-AbCdEf";
    double.secrets.set(arn, "by arn");
    expect(await place.value(`secret://aws/${arn}`, { ...env, AWS_REGION: "" })).toBe("by arn");
    expect(double.regions).toEqual(["ap-south-1"]);
  });

  it("tells what is missing, refused or of another form, without a value", async () => {
    const { place, env } = await aws();
    const failure = (reference: string, more = {}): ReturnType<typeof failureOf> =>
      failureOf(place.value(reference, { ...env, ...more }));
    expect(await failure("secret://aws/none")).toMatchObject({
      code: "invalid_config",
      message: "secret://aws/none is not in AWS Secrets Manager",
    });
    expect(await failure("secret://aws/forbidden")).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("AccessDenied"),
    });
    expect((await failure("secret://aws/plain", { AWS_ACCESS_KEY_ID: "AKIAIOSFODNN7WRONGID" })).message).toContain(
      "UnrecognizedClientException",
    );
    expect((await failure("secret://aws/plain#key")).message).toBe(
      "secret://aws/plain#key has no keys: it is not a JSON object",
    );
    expect(await failure("secret://aws/prod/db#pass")).toMatchObject({
      hint: "Its fields: user, password, port. Choose one with #field.",
    });
    expect(
      (await failure("secret://aws/plain", { AWS_ENDPOINT_URL_SECRETS_MANAGER: "http://aws.example.com" })).message,
    ).toContain("is plain http");
  });

  it.each(ILLS)("survives %s", async (_, ill, passing) => {
    const { double, place, env } = await aws();
    double.ill = ill;
    const error = await failureOf(place.value("secret://aws/plain", env));
    expect(error.code).toBe(passing ? "server_unavailable" : "invalid_config");
    expect(error.message).not.toMatch(/cana|upstream/);
  });

  it("[guard-08a] is given up when the connection is", async () => {
    const { double, place, env } = await aws();
    double.ill = () => "never";
    const controller = new AbortController();
    const failed = failureOf(place.value("secret://aws/plain", env, {}, { signal: controller.signal }));
    await eventually(() => double.asked.length !== 0);
    controller.abort();
    expect((await failed).code).toBe("cancelled");
  });
});

describe("[guard-09] secret://gcp with the real library", () => {
  it("signs in with the key of a service account and reads the payload", async () => {
    const { double, place, env } = await gcp();
    expect(await place.value("secret://gcp/project-a/token", env)).toBe("t-gcp");
    expect(await place.value("secret://gcp/project-a/token#7", env)).toBe("t-seven");
    expect(double.asked[0]).toMatchObject({
      method: "GET",
      headers: { authorization: expect.stringMatching(/^Bearer eyJ/) },
    });
    expect(double.asked[0]?.path).toMatch(/^\/v1\/projects\/project-a\/secrets\/token\/versions\/latest:access/);
  });

  it("takes the project from the environment, else from the key", async () => {
    const { place, env } = await gcp();
    expect(await place.value("secret://gcp/token", { ...env, GOOGLE_CLOUD_PROJECT: "project-a" })).toBe("t-gcp");
    expect(await place.value("secret://gcp/token", env)).toBe("t-of-key");
  });

  it("tells what is missing, refused or no text", async () => {
    const { place, env } = await gcp();
    const failure = (reference: string): ReturnType<typeof failureOf> => failureOf(place.value(reference, env));
    expect(await failure("secret://gcp/project-a/none")).toMatchObject({
      code: "invalid_config",
      message: "secret://gcp/project-a/none is not in Google Secret Manager",
    });
    expect(await failure("secret://gcp/project-a/forbidden")).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("denied"),
      hint: expect.stringContaining("secretAccessor"),
    });
    expect((await failure("secret://gcp/project-a/binary")).message).toContain("is not UTF-8 text");
    const foreign = await gcp();
    foreign.double.ill = () => ({
      status: 401,
      body: { error: { code: 401, status: "UNAUTHENTICATED", message: "invalid" } },
    });
    expect((await failureOf(foreign.place.value("secret://gcp/project-a/token", foreign.env))).code).toBe(
      "invalid_config",
    );
  });

  it.each(ILLS)("survives %s", async (name, ill) => {
    const { double, place, env } = await gcp();
    double.ill = ill;
    const error = await failureOf(place.value("secret://gcp/project-a/token", env));
    if (name.startsWith("50")) expect(error.code).toBe("server_unavailable");
    expect(error.message).not.toMatch(/cana|upstream/);
  });

  it("[guard-08a] is given up when the connection is", async () => {
    const { double, place, env } = await gcp();
    double.ill = () => "never";
    const controller = new AbortController();
    const failed = failureOf(place.value("secret://gcp/project-a/token", env, {}, { signal: controller.signal }));
    await eventually(() => double.asked.length !== 0);
    controller.abort();
    expect((await failed).code).toBe("cancelled");
  });
});

describe("[guard-07a] without the SDKs", () => {
  it("runs the program of the provider", async () => {
    const place = new Place();
    place.program(
      "aws",
      `print(JSON.stringify({ SecretString: JSON.stringify({ args: argv.join(" "), region: env.AWS_REGION }) }))`,
    );
    place.program("gcloud", `print(argv.join(" ") + "\\n")`);
    const value = (reference: string): Promise<string> =>
      place.value(reference, { AWS_REGION: "eu-north-1", GOOGLE_CLOUD_PROJECT: "p-1" }, { providers: withoutSdk });
    expect(await value("secret://aws/prod/db#args")).toBe(
      "secretsmanager get-secret-value --secret-id=prod/db --output=json --region=eu-north-1",
    );
    expect(await value("secret://aws/prod/db#region")).toBe("eu-north-1");
    expect(await value("secret://gcp/token#3")).toBe("secrets versions access 3 --secret=token --quiet --project=p-1");
    place.program("aws", `print(JSON.stringify({ SecretBinary: "${Buffer.from("bytes").toString("base64")}" }))`);
    expect(await value("secret://aws/binary")).toBe("bytes");
  });

  it("says what to install where there is no program either", async () => {
    const place = new Place();
    const hint = async (reference: string): Promise<string | undefined> =>
      (await failureOf(place.value(reference, {}, { providers: withoutSdk }))).hint;
    expect(await hint("secret://aws/x")).toBe("npm install @aws-sdk/client-secrets-manager");
    expect(await hint("secret://gcp/x")).toBe("npm install @google-cloud/secret-manager");
  });

  it("passes on what the program complains of, and nothing that it printed", async () => {
    const place = new Place();
    for (const name of ["aws", "gcloud"])
      place.program(
        name,
        `print("half-a-secret"); process.stderr.write("\\nYou are not logged in.\\n"); process.exitCode = 254`,
      );
    for (const reference of ["secret://aws/x", "secret://gcp/x"]) {
      const { message } = await failureOf(place.value(reference, {}, { providers: withoutSdk }));
      expect(message).toContain("You are not logged in.");
      expect(message).not.toContain("half-a-secret");
    }
    place.program("aws", `print("half-a-secret")`);
    expect((await failureOf(place.value("secret://aws/x", {}, { providers: withoutSdk }))).message).toBe(
      "secret://aws/x was not given: the aws program's answer contains no secret",
    );
  });

  it("does not take a broken package for a missing one", async () => {
    const place = new Place();
    const broken = awsProvider(() =>
      Promise.reject(
        Object.assign(new Error("Cannot find package '@smithy/core' imported from x"), {
          code: "ERR_MODULE_NOT_FOUND",
        }),
      ),
    );
    expect((await failureOf(place.value("secret://aws/x", {}, { providers: [broken] }))).message).toContain(
      "could not be looked up: Cannot find package '@smithy/core'",
    );
  });

  it.skipIf(!isThere("aws"))("works with the real aws program, where the machine has it", async () => {
    const { place, env } = await aws();
    const more = { ...env, PATH: process.env["PATH"] };
    expect(await place.value("secret://aws/prod/db#password", more, { providers: withoutSdk })).toBe("p-aws");
    expect((await failureOf(place.value("secret://aws/none", more, { providers: withoutSdk }))).message).toContain(
      "ResourceNotFoundException",
    );
  });

  it.skipIf(!isThere("gcloud"))("works with the real gcloud program, where the machine has it", async () => {
    const { double, place, env } = await gcp();
    double.accessToken = "token-of-gcloud";
    const more = {
      ...env,
      PATH: process.env["PATH"],
      CLOUDSDK_AUTH_ACCESS_TOKEN: "token-of-gcloud",
      CLOUDSDK_CORE_DISABLE_PROMPTS: "1",
    };
    expect(await place.value("secret://gcp/project-a/token", more, { providers: withoutSdk })).toBe("t-gcp");
  });
});

function isThere(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return !isMissing(program, "no such program");
  }
}
