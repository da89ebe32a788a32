/** What the hub in these tests works with: a folder of notes, skills to import, and servers that say what a file tells them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { writeSkill } from "../support/skill-folder.ts";

const SCRIPTED = resolve(import.meta.dirname, "../fixtures/scripted-server.mjs");

export interface Script {
  readonly tools: readonly object[];
  readonly results?: Readonly<Record<string, object>>;
  readonly resources?: readonly object[];
  readonly prompts?: readonly object[];
}

export class Stage {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-stage-")));

  /** A folder with two files. */
  notes(): string {
    const dir = join(this.dir, "notes");
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "hello.txt"), "Hello from a file.");
    writeFileSync(join(dir, "plan.md"), "# Plan\n\n- read\n- write\n");
    return dir;
  }

  /** Skills that can be used here, that lack something, that are for other systems. */
  skills(): string {
    const dir = join(this.dir, "skills");
    writeSkill(dir, "release-notes", { description: "Writes release notes from merged pull requests." });
    writeSkill(dir, "needs-tools", {
      description: "Renders diagrams with programs that are not installed.",
      more: [
        `metadata: ${JSON.stringify({ openclaw: { requires: { bins: ["no-such-program"], env: ["NO_SUCH_KEY"] } } })}`,
      ],
    });
    writeSkill(dir, "mac-shortcuts", {
      description: "Runs shortcuts of macOS.",
      more: [`metadata: ${JSON.stringify({ openclaw: { os: ["darwin"] } })}`],
    });
    return dir;
  }

  /** An entry for a server that says what `script` has; written again, it says the new one from its next start on. */
  scripted(name: string, script: Script): ServerEntryInput {
    const file = join(this.dir, `${name}.json`);
    writeFileSync(file, JSON.stringify(script));
    return { command: process.execPath, args: [SCRIPTED, file] };
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export const NO_ARGUMENTS = { type: "object", properties: {} } as const;

export function manyTools(count: number): Script {
  return {
    tools: Array.from({ length: count }, (_, index) => ({
      name: `tool_${String(index + 1).padStart(5, "0")}`,
      description: `Number ${index + 1} of many tools.`,
      inputSchema: NO_ARGUMENTS,
    })),
  };
}

/** Where every hostile text tries to reach. */
export const ELSEWHERE = "https://elsewhere.example";

const HOSTILE = [
  "<script>alert('script')</script>",
  `<img src="${ELSEWHERE}/pixel.png" onerror="alert('image')">`,
  `![pixel](${ELSEWHERE}/pixel.png)`,
  "[click](javascript:alert('link'))",
  `<iframe src="${ELSEWHERE}/frame"></iframe>`,
  `<style>@import "${ELSEWHERE}/style.css";</style>`,
].join("\n\n");

/** A server whose every text tries to run something in the page. */
export const HOSTILE_SCRIPT: Script = {
  tools: [
    {
      name: "hostile",
      title: "<b>Hostile</b>",
      description: HOSTILE,
      inputSchema: {
        type: "object",
        properties: { "<img src=x onerror=alert(1)>": { type: "string", title: HOSTILE, description: HOSTILE } },
      },
    },
  ],
  results: {
    hostile: {
      content: [
        { type: "text", text: HOSTILE },
        { type: "text", text: JSON.stringify({ "<script>alert(2)</script>": HOSTILE }) },
        { type: "image", mimeType: "image/svg+xml", data: Buffer.from(svg()).toString("base64") },
        { type: "image", mimeType: 'image/png" onerror="alert(3)', data: "AAAA" },
        { type: "resource_link", uri: "javascript:alert('uri')", name: HOSTILE, description: HOSTILE },
        { type: "resource", resource: { uri: `${ELSEWHERE}/resource`, mimeType: "text/html", text: HOSTILE } },
      ],
      structuredContent: { html: HOSTILE },
    },
  },
  prompts: [{ name: "hostile", description: HOSTILE }],
  resources: [{ uri: "data:text/html,<script>alert(4)</script>", name: HOSTILE, description: HOSTILE }],
};

function svg(): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="alert('svg')"><script>alert('svg')</script><image href="${ELSEWHERE}/in.svg"/><rect width="20" height="20"/></svg>`;
}
