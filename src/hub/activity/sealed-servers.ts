/** Under which name the servers that a conversation had are sealed in the store. */
const SEALED_NAME = /^sessions\/([^/]+)\/servers$/;

export function sealedServersName(conversationId: string): string {
  return `sessions/${conversationId}/servers`;
}

/** The way back; undefined for what is sealed for another reason. */
export function conversationOfSealedName(name: string): string | undefined {
  return SEALED_NAME.exec(name)?.[1];
}
