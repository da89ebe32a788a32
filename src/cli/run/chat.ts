/** `toolcrib run -i`: prompts and answers until the end, in one conversation or several. */
import { asToolcribError, type ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { CHAT_COMMANDS, unknownCommand } from "./chat-commands.ts";
import { chatLines } from "./chat-lines.ts";
import type { ChatParts } from "./chat-parts.ts";
import { runTurn } from "./turn.ts";

export class Chat {
  readonly #parts: ChatParts;

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  /** Resolves with the exit code: that of the last turn where prompts come from a pipe, else 0. */
  async run(first: readonly ContentBlock[] | undefined): Promise<number> {
    const { invocation, interrupts, seat } = this.#parts;
    const { stdin, out } = invocation;
    const lines = chatLines(stdin, out.prompts);
    let exitCode = 0;
    try {
      if (stdin.isTTY)
        out.note(`${(await seat.agent.model()).id}, mode ${seat.agent.mode}. /help lists commands, Ctrl-D ends.`);
      if (first !== undefined) exitCode = await this.#turn(first);
      while (!interrupts.ending.aborted) {
        const line = (await lines.next(interrupts.ending))?.trim();
        if (line === undefined) break;
        if (line === "") continue;
        const [, name = "", rest = ""] = /^\/(\S+)\s*([^]*)$/.exec(line) ?? [];
        const command = CHAT_COMMANDS[name];
        const unknown = command === undefined ? unknownCommand(this.#parts, name, rest) : undefined;
        if (unknown !== undefined) this.#tell(unknown);
        else if (command === undefined) exitCode = await this.#turn(line);
        else if ((await this.#command(() => command.run(this.#parts, rest))) === "exit") break;
      }
    } finally {
      lines.close();
    }
    return stdin.isTTY ? 0 : exitCode;
  }

  async #turn(prompt: string | readonly ContentBlock[]): Promise<number> {
    const { invocation, interrupts, seat, view } = this.#parts;
    try {
      return await runTurn(seat.agent, prompt, { view, out: invocation.out, signal: interrupts.beginTurn() });
    } finally {
      interrupts.endTurn();
    }
  }

  /** What a command refuses is said, and the chat goes on. */
  async #command(run: () => Promise<"exit" | void>): Promise<"exit" | void> {
    try {
      return await run();
    } catch (thrown) {
      this.#tell(asToolcribError(thrown));
    }
  }

  #tell({ message, hint }: ToolcribError): void {
    const { out } = this.#parts.invocation;
    out.labelled("red", "error:", hint === undefined ? message : `${message}\n  ${hint}`);
  }
}
