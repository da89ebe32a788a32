/** What `npm run demo` shows: three MCP servers and one function in one catalog, and a few calls through it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createHub, type Hub, resultText, type ServerInfo } from "toolcrib";

const workspace = mkdtempSync(join(tmpdir(), "toolcrib-demo-"));
const hub = await createHub(join(import.meta.dirname, "toolcrib.json"), {
  env: environment(),
  home: join(workspace, ".toolcrib"),
  wait: false,
});
try {
  await showServers(hub);
  showTools(hub);
  await showCalls(hub);
  showNextSteps();
} finally {
  await hub.close();
  rmSync(workspace, { recursive: true, force: true });
}

/** The servers shall run on the Node that runs this, and keep their files in a folder that is removed at the end. */
function environment(): NodeJS.ProcessEnv {
  const path = [dirname(process.execPath), process.env["PATH"]].filter(Boolean).join(delimiter);
  return { ...process.env, PATH: path, DEMO_DIR: workspace };
}

async function showServers(hub: Hub): Promise<void> {
  heading("Servers connect, each for itself");
  const show = ({ id, state, toolCount, lastError }: ServerInfo): void => {
    const detail = state === "ready" ? `${toolCount} tools` : state === "failed" ? (lastError ?? "") : "";
    console.log(`  ${id.padEnd(12)}${state.padEnd(12)}${detail}`.trimEnd());
  };
  for (const info of hub.servers.list()) show(info);
  const stop = hub.on("server", ({ info }) => show(info));
  const servers = await Promise.all(hub.servers.list().map(({ id }) => hub.servers.connect(id)));
  stop();
  if (servers.some(({ state }) => state !== "ready")) process.exitCode = 1;
}

function showTools(hub: Hub): void {
  const { tools, version } = hub.view(hub.session);
  heading(`One catalog: ${tools.length} tools, version ${version}`);
  const bySource = Map.groupBy(tools, ({ origin }) => origin.source);
  for (const [source, own] of bySource) {
    const names = own.map(({ name }) => name);
    const rest = names.length > 3 ? `, and ${names.length - 3} more` : "";
    console.log(`  ${source.padEnd(12)}${names.slice(0, 3).join(", ")}${rest}`);
  }
}

async function showCalls(hub: Hub): Promise<void> {
  heading("Every call takes the same path");
  const note = join(workspace, "note.txt");
  await call(hub, "everything__echo", { message: "Hello" });
  await call(hub, "everything__get-sum", { a: 2, b: 40 });
  await call(hub, "files__write_file", { path: note, content: "Written through Toolcrib." });
  await call(hub, "files__read_text_file", { path: note });
  const ada = { name: "Ada", entityType: "person", observations: ["wrote the first program"] };
  await call(hub, "memory__create_entities", { entities: [ada] });
  await call(hub, "memory__read_graph", {});
  await call(hub, "shout", { text: "a function of this program" });
  await call(hub, "everything__trigger-long-running-operation", { duration: 1, steps: 4 });
  await call(hub, "files__move_file", { source: note, destination: `${note}.old` }, "denied");
  await call(hub, "everything__get-sum", { a: "two", b: 40 }, "tool_error");
  await call(hub, "everything__get-summ", { a: 2, b: 40 }, "not_found");
}

/** Calls never throw: how one ended is in its Outcome. */
async function call(hub: Hub, name: string, args: Record<string, unknown>, expected = "ok"): Promise<void> {
  console.log(`\n  > ${name} ${shorten(JSON.stringify(args).replaceAll(workspace, "…"), 70)}`);
  const outcome = await hub.call({
    name,
    arguments: args,
    onProgress: ({ progress, total }) => console.log(`    … ${progress} of ${total}`),
  });
  if (outcome.ok) console.log(`    ${shorten(resultText(outcome.result).replaceAll(workspace, "…"), 100)}`);
  else
    console.log(`    ${outcome.error.code}: ${shorten(`${outcome.error.message} ${outcome.error.hint ?? ""}`, 140)}`);
  if ((outcome.ok ? "ok" : outcome.error.code) !== expected) process.exitCode = 1;
}

function showNextSteps(): void {
  heading("Try next");
  console.log(`  node bin/toolcrib.js list --config demo/toolcrib.json
  node bin/toolcrib.js call everything__get-sum a=2 b=40 --config demo/toolcrib.json
  node bin/toolcrib.js doctor --config demo/toolcrib.json
  README.md tells how to use your own servers, docs/library.md how to use them from a program.`);
}

function heading(text: string): void {
  console.log(`\n${text}`);
}

function shorten(text: string, length: number): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}
