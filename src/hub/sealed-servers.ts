/** Under which name the servers that a conversation had are sealed in the store. */
const NAME = /^sessions\/([^/]+)\/servers$/;

export function sealedServersOf(conversationId: string): string {
  return `sessions/${conversationId}/servers`;
}

/** The way back; undefined for what is sealed for another reason. */
export function conversationOfSealed(name: string): string | undefined {
  return NAME.exec(name)?.[1];
}
