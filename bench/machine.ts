/** On what was measured: numbers without it say little. */
import { cpus, loadavg, totalmem } from "node:os";

export function machineFacts() {
  return {
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? "",
    memoryGb: Math.round(totalmem() / 1024 ** 3),
  };
}

export function machineLine(): string {
  const { cpus: count, cpu, memoryGb, node, platform } = machineFacts();
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, ${count} × ${cpu}, ${memoryGb} GB, Node ${node}, ${platform}, load ${loadavg()[0]?.toFixed(1)}.`;
}
