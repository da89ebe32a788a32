/** All phrases that the detectors know. */
import { phraseBook } from "./book.ts";
import type { CueLabel } from "./cue.ts";
import { LANGUAGE_LEXICON, LANGUAGE_PHRASES } from "./languages.ts";
import { LEXICON } from "./lexicon.ts";
import { OVERRIDE_PHRASES } from "./override.ts";
import { REQUEST_PHRASES } from "./request.ts";
import { SETTING_PHRASES } from "./setting.ts";

export const CUE_BOOK = phraseBook<CueLabel>({ ...LEXICON, ...LANGUAGE_LEXICON }, [
  ...OVERRIDE_PHRASES,
  ...REQUEST_PHRASES,
  ...SETTING_PHRASES,
  ...LANGUAGE_PHRASES,
]);
