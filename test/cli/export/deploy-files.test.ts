import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { findNginx } from "../../support/nginx.ts";
import { isMissing } from "../../support/skips.ts";
import { examplesIn } from "../../docs/markdown-examples.ts";

const root = join(import.meta.dirname, "../../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

it("[cage-04a] the image has what a PostgreSQL store and a cluster need, at the versions that are tested", () => {
  // Written by people, and checked by npm.
  const { devDependencies, peerDependencies } = JSON.parse(read("package.json")) as Record<
    "devDependencies" | "peerDependencies",
    Record<string, string>
  >;
  const needed = Object.keys(peerDependencies).filter((name) => name === "pg" || name.startsWith("@nats-io/"));
  expect(needed).toHaveLength(4);
  const installed = read("deploy/Dockerfile").split(/\s+/);
  expect(installed).toEqual(expect.arrayContaining(needed.map((name) => `${name}@${devDependencies[name] ?? ""}`)));
});

it.each(["deploy/nginx.conf", "deploy/nginx-path.conf", "docs/scale.md"])(
  "[scale-05a] nginx of %s passes WebSockets and large bodies",
  (file) => {
    const text = read(file);
    for (const line of [
      "proxy_set_header Upgrade $http_upgrade;",
      "proxy_set_header Connection $connection_upgrade;",
      "client_max_body_size",
      "proxy_buffering off;",
    ]) {
      expect(text).toContain(line);
    }
  },
);

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-deploy-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Whether a program is here; says so if not. */
function has(program: string, ...args: string[]): boolean {
  const isHere = spawnSync(program, args).error === undefined;
  if (!isHere) console.warn(`Not tested here: deploy files with ${program}: it is not installed`);
  return isHere;
}

it("[joy-18c] the config of docs/deploy.md loads without a warning, and both forms of nginx are named", async () => {
  const text = read("docs/deploy.md");
  const config = examplesIn(text).find(({ language }) => language === "jsonc")?.text ?? "";
  const file = join(folder(), "toolcrib.json");
  writeFileSync(file, config);
  const { warnings, servers } = await loadConfig({
    file,
    env: { ADA_TOKEN: "a".repeat(32), OPS_TOKEN: "b".repeat(32) },
    cwd: "/",
  });
  expect([warnings, servers.length]).toEqual([[], 1]);
  for (const part of ["listen 443 ssl http2;", "http2 on;", "deploy/nginx.conf", "deploy/toolcrib.service"]) {
    expect(text).toContain(part);
  }
});

it.each(["deploy/nginx.conf", "deploy/nginx-path.conf"])("[joy-18a] nginx accepts %s", (conf) => {
  const nginx = findNginx();
  if (isMissing("deploy files with nginx", "missing" in nginx ? nginx.missing : undefined)) return;
  if (!("path" in nginx) || !has("openssl", "version")) return;
  const dir = folder();
  const [key, certificate] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const subject = ["-subj", "/CN=tools.example.com", "-days", "1", "-keyout", key, "-out", certificate];
  expect(spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...subject]).status).toBe(0);
  // The test of a config opens its ports and makes its folders.
  const site = read(conf)
    .replace("listen 443 ", `listen unix:${join(dir, "socket")} `)
    .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`);
  const file = join(dir, "nginx.conf");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`);
  const http = ["access_log off;", ...paths, site].join("\n");
  writeFileSync(file, `pid ${dir}/pid;\nerror_log stderr;\nevents {}\nhttp {\n${http}\n}\n`);
  const { status, stderr } = spawnSync(nginx.path, ["-t", "-p", dir, "-c", file], { encoding: "utf8" });
  expect(stderr).toContain("syntax is ok");
  expect([status, stderr]).toEqual([0, expect.stringContaining("test is successful")]);
});

it("[joy-18a] systemd accepts the unit", () => {
  if (!has("systemd-analyze", "--version")) return;
  const unit = join(folder(), "toolcrib.service");
  writeFileSync(unit, read("deploy/toolcrib.service").replace("/usr/bin/toolcrib", process.execPath));
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
  expect([status, stderr.split("\n").filter((line) => line.includes("toolcrib.service"))]).toEqual([0, []]);
});
