/** `toolcrib export`: the config as a compose file or as Kubernetes manifests. */
import { access, chmod, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeAtomic } from "../../files/write-atomic.ts";
import { isConfigName } from "../../config/find-config.ts";
import { invalidConfigError } from "../../config/config-document.ts";
import { clusterOf } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { escapeJson } from "../../base/visible-text.ts";
import type { Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { userConfigFile } from "../config-target.ts";
import { composeFiles, ENGINES } from "./compose.ts";
import { type Deployment, type DeploymentFile, planDeployment } from "./deployment.ts";
import { kubernetesFiles } from "./kubernetes.ts";

const TARGETS = ["compose", "kubernetes"] as const;
type Target = (typeof TARGETS)[number];

/** The name that deploy/Dockerfile suggests. */
const DEFAULT_IMAGE = "toolcrib";
const DEFAULT_REPLICAS = 3;

/** Prints the files, or writes them into a folder. With --json the output has the files in both cases. */
export async function run(invocation: Invocation): Promise<number> {
  const { cwd, env, flags, out } = invocation;
  const target = targetOf(invocation.args[0]);
  const folder = flags.text("out");
  const loaded = await loadCommandConfig(invocation);
  if (loaded.project !== undefined) {
    // One config cannot express the extra level of the project's rules.
    throw new ToolcribError("invalid_arguments", "Two configs are in use here, and only one can be exported.", {
      hint: `Choose one: --config ${loaded.file ?? userConfigFile(invocation)}${isConfigName(loaded.project.file) ? `, or --config ${loaded.project.file}` : ""}`,
    });
  }
  // Without a part of its entry a server might be allowed more, and without a role's own the role gets the shared one.
  const wrong = [...(loaded.unusable?.values() ?? [])].flat();
  if (wrong.length > 0) throw invalidConfigError(wrong);
  for (const { problem } of loaded.servers)
    if (problem !== undefined) throw new ToolcribError("invalid_config", problem);
  const warnings: string[] = [];
  const deployment = planDeployment(loaded, {
    image: flags.text("image") ?? DEFAULT_IMAGE,
    replicas: replicasOf(flags.text("replicas"), clusterOf(loaded.config.cluster) !== undefined),
    taken: target === "compose" ? ENGINES : [],
    bringsEngines: target === "compose",
    env,
    warn: (message) => warnings.push(message),
  });
  warnings.push(...targetWarnings(target, deployment));
  const files =
    target === "kubernetes"
      ? kubernetesFiles(deployment)
      : composeFiles(deployment, { config: folder === undefined ? "inline" : "file" });
  const written = folder === undefined ? [] : await write(files, resolve(cwd, folder), flags.has("force"));
  for (const message of warnings) out.warn(message);
  if (out.json) out.value({ target, files, written, warnings });
  else if (folder === undefined) for (const { text } of files) out.line(escapeJson(text.trimEnd()));
  else for (const path of written) out.line(path);
  return 0;
}

function targetOf(text: string | undefined): Target {
  const target = TARGETS.find((each) => each === text);
  if (target !== undefined) return target;
  throw new ToolcribError("invalid_arguments", `"${text ?? ""}" is not an export target.`, {
    hint: `Use ${TARGETS.join(" or ")}.`,
  });
}

function replicasOf(text: string | undefined, isCluster: boolean): number {
  const count = text === undefined ? DEFAULT_REPLICAS : Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 100) {
    throw new ToolcribError("invalid_arguments", "--replicas must be a whole number from 1 to 100.");
  }
  if (isCluster || text === undefined || count === 1) return count;
  throw new ToolcribError("invalid_arguments", "--replicas needs a cluster, and the config does not define one.", {
    hint: "Set `cluster` and `store` in the config, as described in docs/scale.md.",
  });
}

function targetWarnings(target: Target, { image, isCluster, servers }: Deployment): string[] {
  if (target === "compose") {
    const engines = "The file starts its own NATS and PostgreSQL. The contents of the current store are not exported.";
    return isCluster ? [engines] : [];
  }
  const fromHub = `The image ${image} would be pulled from Docker Hub. Push the image of deploy/Dockerfile to your registry, and pass its name with --image.`;
  return [
    ...(image.includes("/") ? [] : [fromHub]),
    ...servers
      .filter(({ read, write: writes }) => read.length + writes.length > 0)
      .map(
        ({ id }) => `The server "${id}" uses folders of this machine, which a cluster does not have. Give it volumes.`,
      ),
  ];
}

async function write(files: readonly DeploymentFile[], folder: string, force: boolean): Promise<string[]> {
  const paths = files.map(({ path }) => join(folder, path));
  for (const path of force ? [] : paths) {
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere)
      throw new ToolcribError("conflict", `The file ${path} already exists.`, { hint: "Use --force to overwrite it." });
  }
  await mkdir(folder, { recursive: true });
  for (const { path, text } of files) {
    await writeAtomic(join(folder, path), text);
    // The gateway runs as a different user.
    await chmod(join(folder, path), 0o644);
  }
  return paths;
}
