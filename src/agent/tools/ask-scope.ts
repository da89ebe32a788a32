/** Who answers if what runs now needs a yes, for built-in tools that make further calls: a tool's `execute` has no place for it. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { AskCallback } from "../../model/ask.ts";

export const askScope = new AsyncLocalStorage<AskCallback | undefined>();
