/** Where the outcome of a bench goes: JSON beside it, tables into a document. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MARKS = ["<!-- bench -->", "<!-- /bench -->"] as const;

/** Everything between the two marks is replaced. */
export function putIntoDocument(file: string, text: string): void {
  const before = readFileSync(file, "utf8");
  const [begin, end] = [before.indexOf(MARKS[0]), before.indexOf(MARKS[1])];
  if (begin < 0 || end < begin) throw new Error(`${file} lacks the marks ${MARKS.join(" and ")}.`);
  writeFileSync(file, `${before.slice(0, begin + MARKS[0].length)}\n${text}\n${before.slice(end)}`);
}

export function keep(folder: string, name: string, result: object): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}
