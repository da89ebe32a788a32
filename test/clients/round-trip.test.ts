import { describe, expect, it } from "vitest";
import { CLIENT_IDS } from "../../src/clients/agent-client.ts";
import { editorFor } from "../../src/files/edit/editors.ts";
import { client, fixtureDocument, fixtureText, LINUX } from "./fixture.ts";
import { SERVERS } from "./written.ts";

/** As editors on other systems leave them. */
const VARIANTS: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  "without a final line break": (text) => text.trimEnd(),
  "with the line breaks of Windows": (text) => text.replaceAll("\n", "\r\n"),
  "not there yet": () => "",
};

describe("writing into a client's file and taking it out", () => {
  describe.each(CLIENT_IDS)("%s", (id) => {
    const of = client(id);
    const editor = editorFor(of.format);

    it("[skill-15a] the editor reads the file as the plain parser does", () => {
      expect(editor.parse(fixtureText(id))).toEqual(fixtureDocument(of));
    });

    it.each(Object.keys(VARIANTS))(
      "[skill-15a] each written server comes back, and goes without a trace: %s",
      (name) => {
        const before = VARIANTS[name]?.(fixtureText(id)) ?? "";
        for (const file of of.files(LINUX)) {
          for (const [serverId, server] of Object.entries(SERVERS)) {
            const entry = of.write(serverId, server);
            if (entry === undefined) continue;
            const path = of.pathOf(serverId, file);
            const { text, madeFrom } = editor.set(before, path, entry);
            expect(editor.remove(text, path, { alsoFrom: madeFrom })).toBe(before);

            const again = editor.set(editor.remove(text, path, { alsoFrom: madeFrom }), path, entry);
            expect(again.text).toBe(text);
            const { servers } = of.read(editor.parse(again.text), file);
            expect(servers[serverId]).toEqual(
              of.read(editor.parse(editor.set("", path, entry).text), file).servers[serverId],
            );
            expect(servers[serverId]).toBeDefined();
          }
        }
      },
    );

    it("[skill-15a] comments, other servers and unknown keys stay", () => {
      const before = fixtureText(id);
      const file = of.files(LINUX)[0];
      const entry = of.write("toolcrib", { command: "toolcrib", args: ["mcp"] });
      if (file === undefined || entry === undefined) throw new Error("there is nothing to write");
      const { text } = editor.set(before, of.pathOf("toolcrib", file), entry);
      const lines = new Set(text.split("\n").map(bare));
      for (const line of before.split("\n")) expect(lines).toContain(bare(line));
      const { toolcrib, ...others } = of.read(editor.parse(text), file).servers;
      expect(toolcrib).toBeDefined();
      expect(others).toEqual(of.read(editor.parse(before), file).servers);
    });

    it("[skill-15a] all of them together, taken out again from the last to the first", () => {
      const before = fixtureText(id);
      const file = of.files(LINUX)[0];
      if (file === undefined) throw new Error("there is no file");
      let text = before;
      const made: { serverId: string; madeFrom: number }[] = [];
      for (const [serverId, server] of Object.entries(SERVERS)) {
        const entry = of.write(serverId, server);
        if (entry === undefined) continue;
        const edited = editor.set(text, of.pathOf(serverId, file), entry);
        text = edited.text;
        made.push({ serverId, madeFrom: edited.madeFrom });
      }
      expect(Object.keys(of.read(editor.parse(text), file).servers)).toEqual(
        expect.arrayContaining(made.map(({ serverId }) => serverId)),
      );
      for (const { serverId, madeFrom } of made.toReversed()) {
        text = editor.remove(text, of.pathOf(serverId, file), { alsoFrom: madeFrom });
      }
      expect(text).toBe(before);
    });
  });
});

/** A line without the comma that a following entry needs. */
function bare(line: string): string {
  return line.replace(/,?\s*$/, "").trim();
}
