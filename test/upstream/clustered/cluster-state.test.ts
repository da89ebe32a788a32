import { describe, expect, it } from "vitest";
import type { ServerState } from "../../../src/model/server-state.ts";
import { type StateInputs, clusterState } from "../../../src/upstream/clustered/clustered-connection.ts";

const NOW: StateInputs = {
  isClosed: false,
  isEnabled: true,
  isWanted: true,
  isClusterUp: true,
  wasUp: false,
  isHandedOver: false,
  failure: undefined,
  now: 1000,
};
const READY: ServerState = { kind: "ready", since: 1 };
const FAILED: ServerState = { kind: "failed", reason: "no such program" };
const kindOf = (states: (ServerState | undefined)[], now: Partial<StateInputs> = {}): string =>
  clusterState(
    states.map((state) => ({ state })),
    { ...NOW, ...now },
  ).kind;

describe("[scale-06a] the state of a server in a cluster", () => {
  it("is that of the place where it is up", () => {
    expect(kindOf([{ kind: "connecting" }, READY])).toBe("ready");
    expect(kindOf([{ kind: "connecting" }, undefined])).toBe("connecting");
  });

  it("is what this node has been told to do with it, whatever others do", () => {
    expect(kindOf([READY], { isWanted: false })).toBe("idle");
    expect(kindOf([READY], { isEnabled: false })).toBe("disabled");
    expect(kindOf([READY], { isClosed: true })).toBe("closed");
  });

  it("is not failed as long as another node may try", () => {
    expect(kindOf([FAILED])).toBe("connecting");
    expect(clusterState([], { ...NOW, failure: { reason: "no such program", hint: "install it" } })).toEqual({
      kind: "failed",
      reason: "no such program",
      hint: "install it",
    });
  });

  it("[scale-09b] says why nobody runs it", () => {
    expect(kindOf([])).toBe("connecting");
    expect(clusterState([], { ...NOW, wasUp: true })).toMatchObject({ kind: "restarting", nextAt: 2000 });
    expect(kindOf([], { wasUp: true, isHandedOver: true })).toBe("connecting");
    const cut = clusterState([], { ...NOW, wasUp: true, isClusterUp: false });
    expect(cut).toMatchObject({ kind: "restarting", reason: expect.stringContaining("NATS") });
  });
});
