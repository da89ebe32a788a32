import type { LoadedConfig } from "../../config/load-config.ts";
import { type PinDiff, type PinEntry, titleOf } from "../../hub/pins/pin-event.ts";
import type { Pins } from "../../hub/pins/pins.ts";
import { ToolcribError } from "../../model/errors.ts";
import { loadForCommand } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import {
  type Chosen,
  choose,
  chooseAll,
  hidingNothing,
  ownName,
  publicName,
  recordEvents,
  withPins,
} from "../pins/pinned-tools.ts";
import { type RunningHub, withHub } from "../running-hub.ts";
import type { Column } from "../table.ts";

/** Enough of a fingerprint to compare by eye. */
const SHORT = 12;

export async function run(invocation: Invocation): Promise<number> {
  const [action, ...names] = invocation.args;
  const config = await loadForCommand(invocation);
  switch (action) {
    case "list":
      return withPins(invocation, config, { create: false }, async (pins) => list(invocation, pins));
    case "diff":
      return diff(invocation, config, names);
    case "approve":
      return approve(invocation, config, names);
    case "reset":
      return withPins(invocation, config, { create: true }, (pins) => reset(invocation, config, pins, names));
    default:
      throw new ToolcribError("invalid_arguments", `There is no "pins ${action ?? ""}".`, {
        hint: "toolcrib pins list, diff, approve or reset.",
      });
  }
}

const COLUMNS: readonly Column<PinEntry>[] = [
  { title: "SERVER", cell: (pin) => pin.server },
  { title: "TOOL", cell: (pin) => (pin.kind === "tool" ? pin.tool : titleOf(pin)) },
  { title: "FINGERPRINT", cell: (pin) => pin.fingerprint.slice(0, SHORT) },
  { title: "PINNED", cell: (pin) => pin.pinnedAt },
];

/** What is in the file. No server is connected, so nothing is said of what they offer now. */
function list({ out }: Invocation, pins: Pins): number {
  const entries = pins.list();
  if (out.json) out.value(entries.map(({ state: _state, ...entry }) => entry));
  else if (entries.length === 0)
    out.note(`Nothing is pinned in ${pins.file}. What a server offers is pinned when it is first seen.`);
  else out.table(COLUMNS, entries);
  return 0;
}

function diff(invocation: Invocation, config: LoadedConfig, names: readonly string[]): Promise<number> {
  const { out } = invocation;
  return withOffered(invocation, config, async (running, pins) => {
    const chosen = await chosenThings(invocation, running, pins, names);
    const diffs = chosen.flatMap(({ server, thing }) => pins.diff(server, thing));
    const gone = pins.list().filter((pin) => pin.state === "gone" && isChosen(chosen, pin));
    if (out.json) {
      const missing = gone.map(({ server, kind, tool, fingerprint }) => ({
        name: ownName({ server, kind, tool }),
        state: "gone",
        server,
        kind,
        tool,
        before: fingerprint,
        after: null,
        diff: [],
      }));
      out.value([...diffs.map((each) => named(running, each)), ...missing]);
      return 0;
    }
    for (const each of diffs) showDiff(invocation, running, each);
    for (const pin of gone) out.line(`${out.paint("bold", ownName(pin))} is not offered any more`);
    if (diffs.length + gone.length === 0) out.note("Nothing differs from its pin.");
    return 0;
  });
}

function approve(invocation: Invocation, config: LoadedConfig, names: readonly string[]): Promise<number> {
  const { out, flags } = invocation;
  if ((names.length === 0) !== flags.has("all")) {
    throw new ToolcribError("invalid_arguments", "Say what to approve, or --all.", {
      hint: "toolcrib pins diff shows what changed and what is new.",
    });
  }
  return withOffered(invocation, config, async (running, pins) => {
    const approved: PinDiff[] = [];
    for (const { server, thing } of await chosenThings(invocation, running, pins, names)) {
      approved.push(...(await pins.approve(server, thing)));
    }
    if (approved.length > 0) recordEvents(invocation, config, "pin.approved", approved);
    if (out.json) out.value(approved.map((each) => named(running, each)));
    else if (approved.length === 0) out.line("Nothing to approve: nothing differs from its pin.");
    for (const each of out.json ? [] : approved) {
      showDiff(invocation, running, each);
      out.line(`  approved: ${each.before?.slice(0, SHORT) ?? "(not pinned)"} → ${each.after.slice(0, SHORT)}`);
    }
    return 0;
  });
}

async function reset(
  invocation: Invocation,
  config: LoadedConfig,
  pins: Pins,
  names: readonly string[],
): Promise<number> {
  const { out } = invocation;
  const [server] = names;
  if (names.length > 1) throw new ToolcribError("invalid_arguments", "Name one server, or none to forget all pins.");
  if (server !== undefined && !pins.list().some((pin) => pin.server === server)) {
    throw new ToolcribError("not_found", `Nothing is pinned of a server "${server}".`, {
      hint: "toolcrib pins list shows the pins.",
    });
  }
  const removed = await pins.reset(server);
  if (removed.length > 0) recordEvents(invocation, config, "pin.reset", removed);
  if (out.json) out.value({ file: pins.file, removed });
  else out.line(`Forgot ${removed.length} pins in ${pins.file}. Each is pinned again when it is next seen.`);
  return 0;
}

/** With what the servers offer now. */
function withOffered(
  invocation: Invocation,
  config: LoadedConfig,
  use: (running: RunningHub, pins: Pins) => Promise<number>,
): Promise<number> {
  return withPins(invocation, config, { create: true }, (pins) =>
    withHub(invocation, (running) => use(running, pins), { config: hidingNothing(config) }),
  );
}

async function chosenThings(
  invocation: Invocation,
  running: RunningHub,
  pins: Pins,
  names: readonly string[],
): Promise<Chosen[]> {
  if (names.length === 0) return chooseAll(invocation, running, pins);
  const chosen: Chosen[] = [];
  for (const name of names) chosen.push(...(await choose(running, pins, name)));
  return chosen;
}

function isChosen(chosen: readonly Chosen[], pin: PinEntry): boolean {
  return chosen.some(
    ({ server, thing }) =>
      server === pin.server && (thing === undefined || (thing.kind === pin.kind && thing.name === pin.tool)),
  );
}

function named(running: RunningHub, { server, kind, tool, ...rest }: PinDiff): object {
  return { name: publicName(running, { server, kind, tool }), server, kind, tool, ...rest };
}

function showDiff({ out }: Invocation, running: RunningHub, pin: PinDiff): void {
  const { server, kind, tool, state, diff } = pin;
  const title = kind === "tool" ? tool : titleOf(pin);
  const news = state === "new" ? ", new" : "";
  out.line(`${out.paint("bold", publicName(running, pin))}  (${title} of ${server}${news})`);
  for (const line of diff) out.line(`  ${paintLine(out, line)}`);
}

function paintLine(out: Invocation["out"], line: string): string {
  const style = { "+": "green", "-": "red", "!": "yellow" } as const;
  const mark = line.charAt(0);
  return mark === "+" || mark === "-" || mark === "!" ? out.paint(style[mark], line) : line;
}
