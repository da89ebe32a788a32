/** A line to NATS that can be cut or lose what is sent over it, for one node alone. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Line {
  readonly url: string;
  /** Ends what goes over it, and lets nothing new begin until it is mended. */
  cut(isCut: boolean): void;
  /** From now on, or no longer: nothing that the node sends arrives, and nobody is told. */
  swallow(isSwallowed: boolean): void;
  /** What the node has sent so far: the subjects, in their order. */
  readonly subjects: readonly string[];
  stop(): Promise<void>;
}

export async function lineTo(url: string): Promise<Line> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const subjects: string[] = [];
  let isDown = false;
  let swallows = false;
  const server = createServer((near) => {
    if (isDown) return void near.destroy();
    const far = connect(Number(port), hostname);
    near.on("data", (chunk: Buffer) => {
      for (const [, subject = ""] of chunk.toString("latin1").matchAll(/^H?PUB (\S+)/gm)) subjects.push(subject);
      if (!swallows) far.write(chunk);
    });
    far.pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // It listens at a port, not at a path.
  const address = server.address() as AddressInfo;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `nats://127.0.0.1:${address.port}`,
    subjects,
    swallow: (isSwallowed) => void (swallows = isSwallowed),
    cut(isCut) {
      isDown = isCut;
      if (isCut) cut();
    },
    async stop() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
