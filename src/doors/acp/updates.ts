/** `session/update` of one session, in the order in which they are given. */
import { type AgentContext, methods, type SessionUpdate } from "@agentclientprotocol/sdk/unstable";

export class Updates {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  /** Text of the agent stands there that has not come to the end of a paragraph. */
  #inText = false;

  constructor(client: AgentContext, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  /** Resolves when it is written. Never rejects: a client that is gone wants no updates, and its sessions end by themselves. */
  async send(update: SessionUpdate): Promise<void> {
    await this.#client
      .notify(methods.client.session.update, { sessionId: this.#sessionId, update })
      .catch(() => undefined);
  }

  text(text: string): Promise<void> {
    if (text !== "") this.#inText = !text.endsWith("\n\n");
    return this.send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  thought(text: string): Promise<void> {
    return this.send({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  /** Text with blank lines around it. */
  paragraph(text: string): Promise<void> {
    return this.text(`${this.#inText ? "\n\n" : ""}${text}\n\n`);
  }

  /** What comes now belongs to no text before. */
  turnBegins(): void {
    this.#inText = false;
  }
}
