/** Which kinds of answer a client takes. */
export interface Accepts {
  readonly json: boolean;
  readonly stream: boolean;
}

const BOTH: Accepts = { json: true, stream: true };
const JSON_ONLY: Accepts = { json: true, stream: false };
const STREAM_ONLY: Accepts = { json: false, stream: true };

/** Undefined if the client takes neither. A client that says nothing takes everything. */
export function acceptsOf(accept: string | undefined): Accepts | undefined {
  // What nearly every client sends.
  if (accept === undefined || accept === "application/json, text/event-stream") return BOTH;
  let json = false;
  let stream = false;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";");
    if (parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(parameter))) continue;
    const name = type.trim().toLowerCase();
    if (name === "*/*" || name === "application/*" || name === "application/json") json = true;
    if (name === "*/*" || name === "text/*" || name === "text/event-stream") stream = true;
  }
  if (json) return stream ? BOTH : JSON_ONLY;
  return stream ? STREAM_ONLY : undefined;
}

export function isJson(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType !== undefined && /^\s*application\/json\s*(?:;|$)/i.test(contentType);
}
