import { expect, it } from "vitest";
import type { Shadowing } from "../../../src/hub/pins/shadowing.ts";
import { ScannedDefinitions } from "../../../src/hub/pins/definition-watch.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

function tool(source: string, name: string): ToolCapability {
  const definition = { name, inputSchema: { type: "object" as const } };
  return { kind: "tool", name: `${source}__${name}`, origin: { source, name }, definition, fingerprint: name };
}

it("[scale-11a] with many tools shadowing is looked for once for many changes, and still told of", async () => {
  const clock = new FakeClock();
  const found: Shadowing[] = [];
  const scanned = new ScannedDefinitions({
    clock,
    guard: () => ({ definitions: "warn", sensitivity: "normal" }),
    isTrusted: () => false,
    onSuspicious: () => {},
    onShadowing: (news) => found.push(...news),
  });
  const many = Array.from({ length: 1100 }, (_, index) =>
    tool("a", `tool${String.fromCharCode(97 + (index % 26))}${index}x`),
  );
  scanned.check(many);
  expect(found).toEqual([]);
  const twin = tool("b", "delete_records");
  scanned.check([...many, twin]);
  scanned.check([...many, twin, tool("c", "delete_records")]);
  expect(found).toEqual([]);
  await clock.advance(600_000);
  expect(found).toMatchObject([{ kind: "similar_name", target: { server: "b", name: "delete_records" } }]);
  scanned.close();
});

it("[detect-06a] a definition that a detector failed on is read again, and is not held meanwhile", async () => {
  const clock = new FakeClock();
  let readings = 0;
  const scanned = new ScannedDefinitions({
    clock,
    guard: () => ({ definitions: "quarantine", sensitivity: "normal" }),
    isTrusted: () => false,
    onSuspicious: () => {},
    onShadowing: () => {},
    readers: () => ({
      detects: () => true,
      scan: (_texts, { onUnread }) => {
        readings += 1;
        if (readings === 1) onUnread?.();
        return Promise.resolve(new Map());
      },
    }),
  });
  const listed = tool("a", "delete_records");
  expect(scanned.objectionTo(listed)?.rule?.pattern).toBe("unread");
  await settle();
  expect([scanned.objectionTo(listed), readings]).toEqual([undefined, 1]);
  await clock.advance(60_000);
  expect([scanned.objectionTo(listed), readings]).toEqual([undefined, 2]);
  await settle();
  await clock.advance(600_000);
  expect([scanned.objectionTo(listed), readings]).toEqual([undefined, 2]);
});

it("[sound-05a] a detector gets no secret of the session that brought the definition, also one that came after it", async () => {
  const redactor = new Redactor();
  const sent: string[] = [];
  const listed = tool("near@1", "open_the_vault_with_5f1c9a7b3d20");
  const scanned = new ScannedDefinitions({
    clock: new FakeClock(),
    guard: () => ({ definitions: "warn", sensitivity: "normal" }),
    isTrusted: () => false,
    onSuspicious: () => {},
    onShadowing: () => {},
    maskOf: (source) => (source === "near@1" ? new Redactor(redactor).maskContent : undefined),
    readers: () => ({
      detects: () => true,
      scan: (texts, { mask = (text) => text }) => {
        sent.push(...[...texts].map(mask));
        return Promise.resolve(new Map());
      },
    }),
  });
  redactor.addCredential("5f1c9a7b3d20");
  scanned.check([
    listed,
    { ...listed, origin: { ...listed.origin, source: "files" }, definition: { ...listed.definition } },
  ]);
  await settle();
  expect(sent.filter((text) => /vault/.test(text))).toEqual([
    expect.not.stringContaining("5f1c9a7b3d20"),
    expect.stringContaining("5f1c9a7b3d20"),
  ]);
  scanned.close();
});
