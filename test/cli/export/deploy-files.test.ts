import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

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

it.each(["deploy/nginx.conf", "docs/scale.md"])(
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
