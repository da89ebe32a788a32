/** The text of a client's file as the plans see it. */
import type { AgentClient, ClientFile } from "../../clients/client.ts";
import { editorFor } from "../../files/edit/editor.ts";
import type { TextEditor } from "../../files/edit/text-editor.ts";
import { ToolcribError } from "../../model/errors.ts";

/** Runs what reads or edits the text of a file; where that cannot be done the file is named, and left alone. */
export function editing<T>(client: AgentClient, file: ClientFile, task: (editor: TextEditor) => T): T {
  try {
    return task(editorFor(client.format));
  } catch (error) {
    // Editors know no files.
    if (!(error instanceof ToolcribError) || error.message.includes(file.path)) throw error;
    if (error.code === "invalid_arguments") throw error;
    throw new ToolcribError("invalid_config", `${file.path}: ${error.message}`, {
      hint: `${client.name}'s file was left as it is. Mend it and try again.`,
      details: { file: file.path, ...error.details },
      cause: error,
    });
  }
}
