/** One skill from the author's folder to an agent that uses it, with nothing but the command line and real programs. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it, vi } from "vitest";
import { FILES, TEXTS } from "../cli/client-files.ts";
import { bundled, type Workspace, workspace } from "../cli/run-cli.ts";
import { writeSkill } from "../support/skill-folder.ts";

const CLIENTS = ["cursor", "claude-desktop", "codex"] as const;

function homeWithClients(place: Workspace): void {
  for (const id of CLIENTS) {
    const file = join(place.home, FILES[id]);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, TEXTS[id]);
  }
}

/** A skill that wants the real filesystem and memory servers, one with a folder to be given and one with a token. */
function notesSkill(place: Workspace): string {
  const server = (name: string, entry: Record<string, unknown>, parameters: string[] = []): string[] => [
    `  - name: ${name}`,
    `    description: For ${name}`,
    "    config-template:",
    `      command: ${JSON.stringify(entry["command"])}`,
    `      args: ${JSON.stringify(entry["args"])}`,
    ...parameters,
  ];
  return writeSkill(place.dir, "notes", {
    more: [
      "requires-mcp-servers:",
      ...server("note-files", bundled("filesystem", "${NOTES}"), [
        "    parameters:",
        "      NOTES: { description: Where the notes are }",
      ]),
      ...server("note-memory", bundled("memory"), [
        "      env: { NOTE_TOKEN: '${NOTE_TOKEN}' }",
        "    parameters:",
        "      NOTE_TOKEN: { description: Opens the memory, sensitive: true }",
      ]),
    ],
    body: "Read the note with note-files__read_text_file. The rules are in rules.md.",
    files: { "rules.md": "Be brief." },
  });
}

const textOf = (result: unknown): string => JSON.stringify(result);

describe("[skill-16c] a skill that needs two servers", () => {
  it("installs into a home with three clients and works through the gateway", async () => {
    const place = workspace();
    homeWithClients(place);
    place.configure({});
    const notes = join(place.dir, "my notes");
    mkdirSync(notes);
    writeFileSync(join(notes, "today.txt"), "water the plants");
    const skill = notesSkill(place);

    const refused = await place.run(["skill", "install", skill, "--client", CLIENTS.join(",")]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/note-files[^]*NOTES[^]*--with-mcp/);
    for (const id of CLIENTS) expect(readFileSync(join(place.home, FILES[id]), "utf8")).toBe(TEXTS[id]);

    const token = "s3cret-of-the-notes-4711";
    const installed = await place.run(
      [
        ...["skill", "install", skill, "--with-mcp", "--client", CLIENTS.join(",")],
        ...["--set", `NOTES=${notes}`, "--set", "NOTE_TOKEN", "--json"],
      ],
      { env: { NOTE_TOKEN: token } },
    );
    expect(installed.stderr).toBe("");
    expect(installed.code).toBe(0);
    const report = installed.json<{ servers: { id: string; tools: unknown[] }[]; restart: string[] }>();
    expect(report.servers.map(({ id }) => id).toSorted()).toEqual(["note-files", "note-memory"]);
    expect(report.servers.every(({ tools }) => tools.length > 5)).toBe(true);
    expect(report.restart).toHaveLength(3);

    const config = readFileSync(place.configFile, "utf8");
    const written = CLIENTS.map((id) => readFileSync(join(place.home, FILES[id]), "utf8"));
    for (const text of [config, ...written]) expect(text).not.toContain(token);
    for (const text of written) expect(text).not.toContain("secret://");
    expect(config).toContain("secret://");
    // The skill itself is where these clients look, in one folder if they share it.
    expect(existsSync(join(place.home, ".agents/skills/notes/rules.md"))).toBe(true);
    expect(existsSync(join(place.home, ".cursor/skills/notes"))).toBe(false);

    // Through the gateway over HTTP: the skill, its files and its servers' tools by one connection.
    const { child } = place.start(["serve", "--port", "0", "--json", "--config", place.configFile]);
    const url = await addressOf(place, Number(child.pid));
    const client = new Client({ name: "agent", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    try {
      const activated = await client.callTool({ name: "skill__notes", arguments: {} });
      expect(textOf(activated)).toContain("note-files__read_text_file");
      expect(textOf(await client.readResource({ uri: "skill://notes/rules.md" }))).toContain("Be brief.");
      const read = await client.callTool({
        name: "note-files__read_text_file",
        arguments: { path: join(notes, "today.txt") },
      });
      expect(textOf(read)).toContain("water the plants");
      const graph = await client.callTool({ name: "note-memory__read_graph", arguments: {} });
      expect(graph.isError).not.toBe(true);
    } finally {
      await client.close();
      child.kill("SIGTERM");
    }

    // As Cursor would start it, from its own file.
    const cursor = JSON.parse(stripComments(readFileSync(join(place.home, FILES.cursor), "utf8"))) as CursorFile;
    const entry = cursor.mcpServers["note-memory"];
    if (entry?.command === undefined) throw new Error("Cursor has no command for note-memory");
    const single = new Client({ name: "cursor", version: "1" });
    await single.connect(
      new StdioClientTransport({
        command: entry.command,
        args: entry.args ?? [],
        env: { PATH: String(process.env["PATH"]), HOME: place.home, TOOLCRIB_HOME: place.home, ...entry.env },
        stderr: "ignore",
      }),
    );
    expect((await single.listTools()).tools.some(({ name }) => name.endsWith("read_graph"))).toBe(true);
    await single.close();

    const removed = await place.run(["skill", "remove", "notes", "--with-servers"]);
    expect(removed.code).toBe(0);
    for (const id of CLIENTS) expect(readFileSync(join(place.home, FILES[id]), "utf8")).toBe(TEXTS[id]);
    expect(existsSync(join(place.home, ".agents/skills/notes"))).toBe(false);
    expect(readFileSync(place.configFile, "utf8")).not.toContain("note-files");
  });
});

interface CursorFile {
  readonly mcpServers: Record<string, { command?: string; args?: string[]; env?: Record<string, string> }>;
}

function stripComments(text: string): string {
  return text.replaceAll(/^\s*\/\/.*$|(?<=,)\s*\/\/.*$/gm, "").replaceAll(/,(\s*[}\]])/g, "$1");
}

/** A hub leaves its address for the user who runs it. */
async function addressOf({ home }: Workspace, pid: number): Promise<string> {
  const file = join(home, "hubs", `${pid}.json`);
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), { timeout: 60_000, interval: 100 });
  return (JSON.parse(readFileSync(file, "utf8")) as { url: string }).url;
}
