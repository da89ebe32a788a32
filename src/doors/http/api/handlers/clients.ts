import type { AgentClient, ClientPlace, WrittenServer } from "../../../../clients/client.ts";
import type { ClientSnippet } from "../../../../contract/settings.ts";
import { userHome } from "../../../../config/find-config.ts";
import type { TextEditor } from "../../../../files/edit/text-editor.ts";
import type { Handlers } from "../operation.ts";

const ID = "toolcrib";
const PLACEHOLDER = "Bearer <token>";

export const clientHandlers: Handlers<"clientSnippets"> = {
  async clientSnippets(_input, { session, baseUrl }, { hub, env = process.env }) {
    // Editors of every format: nobody else here needs them.
    const [{ CLIENTS }, { editorFor }, { gatewayCommand }] = await Promise.all([
      import("../../../../clients/clients.ts"),
      import("../../../../files/edit/editor.ts"),
      import("../../../../hub/clients/gateway-command.ts"),
    ]);
    const { config, file: configFile } = hub.config;
    const url = `${baseUrl}/mcp`;
    const headers = config.http.auth === undefined ? {} : { headers: { Authorization: PLACEHOLDER } };
    const place: ClientPlace = { platform: process.platform, home: userHome(env), env, projectDir: process.cwd() };
    const clients = CLIENTS.flatMap((client): ClientSnippet[] => {
      const remote: WrittenServer = { url, transport: "http", ...headers };
      const entry = client.write(ID, remote);
      if (entry !== undefined) {
        const command = `toolcrib connect ${client.id} --url ${url}`;
        return [snippetOf(client, entry, { place, command, editorFor, isHere: session.owner })];
      }
      // Started on the hub's machine, by the user who runs the hub: of no use to anybody else.
      const local = session.owner ? client.write(ID, gatewayCommand({ configFile, env })) : undefined;
      if (local === undefined) return [];
      const command = `toolcrib connect ${client.id}`;
      return [snippetOf(client, local, { place, command, editorFor, isHere: true })];
    });
    return { clients };
  },
};

interface SnippetOptions {
  readonly place: ClientPlace;
  readonly command: string;
  readonly editorFor: (format: TextEditor["format"]) => TextEditor;
  /** Whether the caller works on the hub's machine. */
  readonly isHere: boolean;
}

/** A whole file with this server alone. */
function snippetOf(
  client: AgentClient,
  entry: object,
  { place, command, editorFor, isHere }: SnippetOptions,
): ClientSnippet {
  const file = client.files(place).find(({ scope }) => scope === "user") ?? { scope: "user", path: "" };
  const { text } = editorFor(client.format).set(client.newFile ?? "", client.pathOf(ID, file), entry);
  return {
    id: client.id,
    title: client.name,
    file: isHere && file.path !== "" ? file.path : null,
    snippet: text,
    command,
  };
}
