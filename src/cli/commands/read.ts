import type { ResourceContents } from "../../model/protocol.ts";
import type { Invocation } from "../command.ts";
import { findResource, withHub } from "../running-hub.ts";
import { partsOfContents, saveTarget, showOutcome } from "../call-result.ts";
import { formatBytes } from "../../model/content.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [uri = ""] = invocation.args;
  const target = saveTarget(invocation);
  return withHub(invocation, async (running) => {
    await findResource(running, uri, (text) => invocation.out.note(text));
    const { hub, signal } = running;
    const outcome = await hub.read(hub.session, { uri, signal });
    return showOutcome(invocation, running, outcome, {
      show: (result) => {
        // With --out the content is in the file; printing it too would only be in the way.
        if (target === undefined) for (const contents of result.contents) invocation.out.line(textOf(contents));
      },
      parts: (result) => partsOfContents(result.contents),
      target,
    });
  });
}

function textOf({ uri, mimeType, text, blob }: ResourceContents): string {
  if (typeof text === "string") return text.replace(/\n$/, "");
  const size = typeof blob === "string" ? formatBytes(Buffer.byteLength(blob, "base64")) : "empty";
  return `[resource: ${uri}, ${mimeType ?? "unknown type"}, ${size}; --out saves it]`;
}
