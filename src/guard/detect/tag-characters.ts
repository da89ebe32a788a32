import { type Detector, SuspicionList } from "./detector.ts";

/** Tag characters are the pair \udb40 and \udc00 to \udc7f. A black flag before them makes them the flag of a region. */
const RUN = /(\ud83c\udff4)?((?:\udb40[\udc00-\udc7f])+)/g;
const LONGEST_FLAG = 8;

/** Characters that spell ASCII and that no font shows. */
export const tagCharacters: Detector = {
  name: "tag characters",
  mayFind: ({ original, normal }) => normal.removed && original.includes("\udb40"),
  *find({ original }) {
    yield original.length;
    const suspicions = new SuspicionList();
    for (const { 0: found, 1: flag, 2: tags = "", index } of original.matchAll(RUN)) {
      const count = tags.length / 2;
      if (flag !== undefined && count <= LONGEST_FLAG && tags.endsWith("\udb40\udc7f")) continue;
      const start = index + (flag?.length ?? 0);
      suspicions.add("tag_characters", count >= 3 ? "high" : "medium", { start, end: index + found.length });
    }
    return suspicions.all();
  },
};
