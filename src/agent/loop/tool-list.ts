/**
 * The tools that the model is told of. The list stays the same until what the session sees changes: providers remember a
 * request up to the first difference, and tools stand at its beginning.
 */
import type { Hub } from "../../hub/hub.ts";
import type { View } from "../../hub/view.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Session } from "../../sessions/session.ts";
import { type AgentTool, chooseTools } from "../tools/tool-choice.ts";

type ChoiceOptions = Parameters<typeof chooseTools>[2];

export class ToolList {
  readonly #hub: Hub;
  readonly #session: Session;
  readonly #options: ChoiceOptions;
  #view: View | undefined;
  #tools: readonly AgentTool[] = [];

  constructor(hub: Hub, session: Session, options: ChoiceOptions) {
    this.#hub = hub;
    this.#session = session;
    this.#options = options;
  }

  /** As they are to be from now on. */
  choose(): readonly AgentTool[] {
    if (this.#hub.view(this.#session) === this.#view) return this.#tools;
    this.#tools = chooseTools(this.#hub, this.#session, this.#options);
    // After the choice, which narrows the session to what the agent includes.
    this.#view = this.#hub.view(this.#session);
    return this.#tools;
  }

  /** Among those of the last choice. */
  find(name: string): AgentTool | undefined {
    return this.#tools.find(({ model }) => model.name === name);
  }

  /** For the model, which asked for one that it was not given. */
  missing(name: string): ToolcribError {
    const isThere = this.#hub.view(this.#session).tools.some((tool) => tool.name === name);
    if (!isThere) return this.#hub.missing(this.#session, name);
    return new ToolcribError("not_found", `The tool ${name} is not in your list.`, {
      hint: "Use one of those that you were given; search tools among them reach the others.",
    });
  }
}
