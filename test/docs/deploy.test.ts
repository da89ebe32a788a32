/**
 * The commands of docs/deploy.md, as root, in namespaces of their own: users, files, ports and mounts are those of a scratch
 * machine. What stands in for something is listed in the document.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { isBuilt } from "../support/main-program.ts";
import { findNginx } from "../support/nginx.ts";
import { runProgram } from "../support/run-program.ts";
import { everythingArgs } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { examplesIn } from "./markdown-examples.ts";

const root = join(import.meta.dirname, "../..");
const blocks = examplesIn(readFileSync(join(root, "docs/deploy.md"), "utf8"));

const nginx = findNginx();
const isSkipped = isMissing("the commands of docs/deploy.md", reasonToSkip());

function reasonToSkip(): string | undefined {
  if (!isBuilt()) return "dist/ is not built from these sources";
  if (process.getuid?.() !== 0) return "they are run by root alone";
  const programs = ["unshare", "ip", "useradd", "setpriv", "openssl", "curl", "install"];
  const absent = programs.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
  if (absent.length > 0) return `${absent.join(", ")} is not installed`;
  if (spawnSync("unshare", ["--mount", "--net", "--pid", "--fork", "true"]).status !== 0) return "no namespaces here";
  return "missing" in nginx ? nginx.missing : undefined;
}

/** The commands of a block, without comments. */
function commandsOf(part: string): string[] {
  const block = blocks.find(({ language, text }) => language === "sh" && text.includes(part));
  if (block === undefined) throw new Error(`no block of docs/deploy.md has ${part}`);
  return block.text
    .split("\n")
    .map((line) => line.replace(/\s+#.*$/, ""))
    .filter((line) => line !== "");
}

/** What a scratch machine cannot do, and what is done in its place. A command that is in neither is run as it stands. */
const REPLACED: readonly (readonly [command: RegExp, instead: string])[] = [
  [/^npm install --global /, "install_toolcrib"],
  [/^systemctl daemon-reload$/, "true"],
  [/^systemctl enable --now toolcrib$/, "start_unit"],
  [/^apt-get install /, "true"],
  [/^certbot certonly /, "make_certificate"],
  [/^nginx -t && systemctl reload nginx$/, "nginx_run -t && nginx_run"],
  [/^curl -fsS http:\/\/127\.0\.0\.1:4700\/readyz$/, "retried curl -fsS http://127.0.0.1:4700/readyz"],
];

function runnable(command: string): string {
  const [, instead] = REPLACED.find(([pattern]) => pattern.test(command)) ?? [];
  return `say ${JSON.stringify(command.replaceAll(/["$`\\]/g, ""))}\n${instead ?? command}`;
}

/** The scratch machine: /etc is a copy, /var/lib and /usr/local are empty, and the network has nothing but loopback. */
const MACHINE = `
set -eu -o pipefail
cd "$SCRATCH"
ip link set lo up
cp -a /etc etc
mount --bind etc /etc
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /usr/local
mkdir -p /usr/local/bin /usr/local/toolcrib /usr/local/node /etc/systemd/system /etc/nginx/sites-enabled
mount --bind "$ROOT" /usr/local/toolcrib
mount --bind "$NODE" /usr/local/node
export PATH=/usr/local/bin:/usr/local/node:/usr/sbin:/usr/bin:/sbin:/bin
echo '127.0.0.1 localhost tools.example.com' > /etc/hosts
cd /usr/local/toolcrib
say() { echo "== $1"; }
retried() { for _ in $(seq 300); do "$@" > /dev/null 2>&1 && break; sleep 0.1; done; "$@"; }
install_toolcrib() {
  printf '#!/bin/sh\\nexec /usr/local/node/node /usr/local/toolcrib/bin/toolcrib.js "$@"\\n' > /usr/local/bin/toolcrib
  chmod 755 /usr/local/bin/toolcrib
}
# As systemd does: a folder for the state, the user, the variables of the unit and of its file, and nothing else.
start_unit() {
  unit=/etc/systemd/system/toolcrib.service
  sed -i "s|/usr/bin/toolcrib|$(command -v toolcrib)|" $unit
  install -d -m 0755 -o toolcrib -g toolcrib /var/lib/toolcrib
  as_toolcrib $(sed -n 's/^Environment=//p' $unit) $(cat "$(sed -n 's/^EnvironmentFile=-//p' $unit)") $(sed -n 's/^ExecStart=//p' $unit) > "$SCRATCH/hub.log" 2>&1 &
}
as_toolcrib() { setpriv --reuid toolcrib --regid toolcrib --init-groups --no-new-privs env -i PATH=/usr/local/bin:/usr/bin:/bin "$@"; }
make_certificate() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=tools.example.com -addext subjectAltName=DNS:tools.example.com \\
    -keyout /etc/ssl/tools.example.com.key -out /etc/ssl/tools.example.com.pem 2> /dev/null
  export CURL_CA_BUNDLE=/etc/ssl/tools.example.com.pem NODE_EXTRA_CA_CERTS=/etc/ssl/tools.example.com.pem
  # What the package of Debian has around a site.
  mkdir -p /var/lib/nginx
  printf 'user toolcrib;\\npid /var/lib/nginx/pid;\\nevents {}\\nhttp { access_log off; include /etc/nginx/sites-enabled/*; }\\n' > /etc/nginx/nginx.conf
}
nginx_run() { "$NGINX_PROGRAM" -e stderr -c /etc/nginx/nginx.conf "$@"; }
`;

describe.skipIf(isSkipped)("[joy-18e] docs/deploy.md", () => {
  it("leads to a hub behind TLS that answers those with a token", async () => {
    const scratch = mkdtempSync(join(tmpdir(), "toolcrib-machine-"));
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
    const config = JSON.parse(
      blocks.find(({ language, text }) => language === "jsonc" && text.includes("publicUrl"))?.text ?? "",
    ) as { mcpServers: object };
    // Without a network there is nothing that uvx could fetch.
    const [server = "", ...args] = everythingArgs("stdio");
    const inside = server.replace(root, "/usr/local/toolcrib");
    config.mcpServers = { time: { command: "/usr/local/node/node", args: [inside, ...args] } };
    writeFileSync(join(scratch, "toolcrib.json"), JSON.stringify(config));
    const [login = "", connect = ""] = commandsOf("toolcrib login --hub");
    const backup =
      /`sudo -u toolcrib (TOOLCRIB_HOME=[^`]+)`/.exec(readFileSync(join(root, "docs/deploy.md"), "utf8"))?.[1] ?? "";
    expect(backup).toContain("toolcrib backup");
    const api = "https://tools.example.com/api/v1/mcp/tools";
    const script = [
      MACHINE,
      ...commandsOf("useradd").map(runnable),
      'cp "$SCRATCH/toolcrib.json" /etc/toolcrib/toolcrib.json',
      ...commandsOf("systemctl enable").map(runnable),
      ...commandsOf("certbot").map(runnable),
      "set -a; . /etc/toolcrib/env; set +a",
      `retried sh -c 'curl -fsS -H "Authorization: Bearer $ADA_TOKEN" ${api} | grep -q time__get-sum'`,
      `curl -s -o /dev/null -w 'without: %{http_code}\\n' ${api}`,
      `curl -fsS -H "Authorization: Bearer $ADA_TOKEN" -H 'Content-Type: application/json' ${api}/time__get-sum/call -d '{"arguments":{"a":2,"b":40}}'`,
      "stat -c '%a %U' /etc/toolcrib/env",
      "export HOME=$SCRATCH/home; mkdir $HOME $HOME/.config",
      `say login; ${login.replace("TOOLCRIB_TOKEN=…", 'TOOLCRIB_TOKEN="$OPS_TOKEN"')}`,
      `say connect; ${connect}`,
      `say backup; as_toolcrib ${backup}`,
      "stat -c '%U %F' /var/lib/toolcrib/backup.tar.gz",
      "kill $(cat /var/lib/nginx/pid)",
    ].join("\n");
    const ran = await runProgram(
      "timeout",
      [
        "-s",
        "KILL",
        "100",
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "bash",
        "-c",
        script,
      ],
      {
        env: {
          SCRATCH: scratch,
          ROOT: root,
          NODE: dirname(process.execPath),
          NGINX_PROGRAM: "path" in nginx ? nginx.path.replace(root, "/usr/local/toolcrib") : "",
        },
      },
    );
    const hubLog = (): string => readFileSync(join(scratch, "hub.log"), "utf8");
    expect(ran.code, `${ran.stdout}${ran.stderr}`).toBe(0);
    expect(ran.stderr).toContain("test is successful");
    expect(ran.stdout).toContain("without: 401");
    expect(ran.stdout).toContain("The sum of 2 and 40 is 42");
    expect(ran.stdout).toContain("600 root");
    expect(ran.stdout).toMatch(/== login\n[^=]*https:\/\/tools\.example\.com\//);
    expect(ran.stdout).toContain("toolcrib regular file");
    const warned = hubLog()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: string; message: string })
      .filter(({ level }) => level !== "info");
    // The one that the document speaks of.
    expect(warned.map(({ message }) => message)).toEqual([
      expect.stringContaining("The pins cannot be written to /etc/toolcrib/toolcrib.lock"),
    ]);
    // Nothing of it is on this machine.
    expect(spawnSync("id", ["toolcrib"]).status).not.toBe(0);
  }, 120_000);

  it("says of every command that it does not run here", () => {
    const text = readFileSync(join(root, "docs/deploy.md"), "utf8");
    for (const name of ["npm install --global", "systemctl", "apt-get", "certbot", "sudo"]) {
      expect(text.split("## What was run")[1], name).toContain(`\`${name}\``);
    }
  });
});
