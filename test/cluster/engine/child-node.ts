/** A node for tests that kill or pause it. It says on stdout what it does. */
import { openCluster } from "../../../src/cluster/nats-cluster.ts";
import { systemClock } from "../../../src/base/clock.ts";

const [url = "", name = "", leaseMs = "", task = "", argument = ""] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const cluster = await openCluster({
  config: { url, name, node: "child", leaseMs: Number(leaseMs) },
  // As in bench.ts.
  secret: Buffer.alloc(32, "secret"),
  clock: systemClock,
  facts: {},
  warn: (message) => say(`warning ${message}`),
});
say(`node ${cluster.node.id}`);

if (task === "hold") {
  const lease = await cluster.leases.claim(argument, {});
  if (lease === undefined) throw new Error("It is held by another.");
  say(`held ${lease.term}`);
  lease.lost.addEventListener("abort", () => say("lost"));
  // Each line is an act in the name of the lease.
  setInterval(() => lease.holds && say(`act ${Date.now()}`), 10);
} else if (task === "serve") {
  cluster.serve(argument, (call) => {
    say("began");
    return new Promise((_resolve, reject) => {
      call.signal.addEventListener("abort", () => {
        say("aborted");
        reject(new Error("aborted"));
      });
    });
  });
  // It is answered after NATS has taken the subscription.
  await cluster.call("nobody.at.all", { head: {} }).catch(() => say("ready"));
} else {
  const call = cluster.call(argument, { head: {}, onEvent: () => say("event") });
  say("calling");
  await call.catch((error: unknown) => say(`failed ${String(error)}`));
}
// Something must keep the process alive: timers of a node do not.
setInterval(() => {}, 1000);
