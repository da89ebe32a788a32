import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { RemoteHub } from "../../src/cli/remote-hub.ts";

it("[spine-09g] the output of a command at a hub is taken no faster than it is written here", async () => {
  const part = "x".repeat(64 * 1024);
  const server = createServer((_request, response) => {
    let left = 256;
    const more = (): void => {
      while (left > 0 && response.write(part)) left -= 1;
      if (left === 0) response.end();
    };
    response.on("drain", () => {
      left -= 1;
      more();
    });
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const hub = new RemoteHub(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, undefined);
  const { body } = await hub.open("POST", "/", {});
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(body.readableLength).toBeLessThan(512 * 1024);
  let bytes = 0;
  body.on("data", (chunk: Buffer) => (bytes += chunk.length));
  await once(body, "end");
  expect(bytes).toBe(256 * part.length);
});
