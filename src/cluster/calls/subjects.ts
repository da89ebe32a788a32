/** The subjects of one cluster. */
export interface Subjects {
  readonly prefix: string;
  /** Requests. */
  call(address: string): string;
  /** What a handler sends to the node that called. */
  reply(node: string, call: string): string;
  /** What the caller sends to the node that handles it, once it knows which that is. */
  control(node: string, from: string, call: string): string;
  topic(name: string): string;
  /** Where nodes say that calls of an earlier connection of theirs are over. */
  readonly epochs: string;
}

export function subjectsOf(cluster: string): Subjects {
  const prefix = `toolcrib.${cluster}`;
  return {
    prefix,
    call: (address) => `${prefix}.call.${address}`,
    reply: (node, call) => `${prefix}.reply.${node}.${call}`,
    control: (node, from, call) => `${prefix}.control.${node}.${from}.${call}`,
    topic: (name) => `${prefix}.topic.${name}`,
    epochs: `${prefix}.epochs`,
  };
}
