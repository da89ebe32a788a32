/** The page's language: what the person chose on this machine, else what the browser says. */
import { isLanguage, type Language, languageFor, setLanguage } from "../messages/messages.ts";

const KEY = "toolcrib.language";

export function chosenLanguage(): Language | undefined {
  try {
    const text = localStorage.getItem(KEY);
    return isLanguage(text) ? text : undefined;
  } catch {
    // Some browsers refuse storage; the browser's languages are asked then.
    return undefined;
  }
}

/** Every text may change, so the page is loaded again. Anything but a language means the browser's. */
export function chooseLanguage(choice: string): void {
  try {
    if (isLanguage(choice)) localStorage.setItem(KEY, choice);
    else localStorage.removeItem(KEY);
  } catch {
    // Then it cannot be kept.
  }
  location.reload();
}

/** Known before any message is: the built page loads the messages of this language alone. */
export const language = chosenLanguage() ?? languageFor(navigator.languages);
setLanguage(language);
document.documentElement.lang = language;
