import { describe, expect, it } from "vitest";
import type { LeaseState } from "../../../src/cluster/cluster.ts";
import {
  lessLoadedNodes,
  serverCounts,
  planClaims,
  rankNodes,
  claimTurn,
} from "../../../src/upstream/clustered/replica.ts";

const lease = (key: string, holder: string): LeaseState => ({ key, holder, term: 1, value: {} });
const NODES = ["a", "b", "c"];

describe("[scale-06a] placement", () => {
  it("counts the servers of each living node, and nothing else", () => {
    const leases = [
      lease("server.x.0", "a"),
      lease("server.y.0", "a"),
      lease("other.z", "b"),
      lease("server.z.0", "gone"),
    ];
    expect(serverCounts(NODES, leases)).toEqual(
      new Map([
        ["a", 2],
        ["b", 0],
        ["c", 0],
      ]),
    );
  });

  it("ranks who has the least to do first", () => {
    expect(
      rankNodes(
        new Map([
          ["a", 2],
          ["b", 0],
          ["c", 1],
        ]),
        "x",
      ),
    ).toEqual(["b", "c", "a"]);
  });

  it("spreads servers over nodes that are equal, and each node comes to the same order", () => {
    const idle = serverCounts(NODES, []);
    const firsts = Array.from({ length: 90 }, (_, n) => rankNodes(idle, `server${n}`)[0]);
    for (const node of NODES) expect(firsts.filter((first) => first === node).length).toBeGreaterThan(15);
    const other = serverCounts(NODES.toReversed(), []);
    for (let n = 0; n < 20; n++) expect(rankNodes(other, `server${n}`)).toEqual(rankNodes(idle, `server${n}`));
  });

  it("[whole-41a] places servers that start together evenly, whatever their names and in whatever order they are known", () => {
    for (let round = 0; round < 50; round += 1) {
      const open = ["x", "y", "z"].map((name) => ({ token: `${name}${round}`, slots: 1, nodes: NODES }));
      const plan = planClaims(new Map(), open);
      expect(new Set([...plan.values()].map(([first]) => first)).size).toBe(3);
      expect(planClaims(new Map(), open.toReversed())).toEqual(plan);
    }
  });

  it("[whole-41a] counts what runs already, replicas, and who may run a server at all", () => {
    const plan = planClaims(new Map([["a", 2]]), [
      { token: "1", slots: 2, nodes: NODES },
      { token: "2", slots: 1, nodes: ["a", "b"] },
      { token: "3", slots: 1, nodes: NODES },
    ]);
    expect(new Set(plan.get("1")?.slice(0, 2))).toEqual(new Set(["b", "c"]));
    expect(plan.get("2")?.[0]).toBe("b");
    expect(plan.get("3")?.[0]).toBe("c");
  });

  it("gives each node its turn", () => {
    expect(claimTurn("b", ["b", "c", "a"], [0])).toEqual({ slot: 0, after: 0 });
    expect(claimTurn("a", ["b", "c", "a"], [0])).toEqual({ slot: 0, after: 2 });
    expect(claimTurn("x", ["b", "c", "a"], [0])).toBeUndefined();
    expect(claimTurn("b", ["b"], [])).toBeUndefined();
  });

  it("[scale-06c] gives replicas to different nodes at once", () => {
    const order = ["b", "c", "a"];
    expect(order.map((node) => claimTurn(node, order, [0, 2]))).toEqual([
      { slot: 0, after: 0 },
      { slot: 2, after: 0 },
      { slot: 0, after: 1 },
    ]);
  });

  it("moves a server only where that makes a difference", () => {
    const load = new Map([
      ["a", 3],
      ["b", 1],
      ["c", 2],
    ]);
    expect(lessLoadedNodes("a", load)).toEqual(["b"]);
    expect(lessLoadedNodes("c", load)).toEqual([]);
    expect(
      lessLoadedNodes(
        "a",
        new Map([
          ["a", 5],
          ["b", 2],
          ["c", 1],
        ]),
      ),
    ).toEqual(["c", "b"]);
    expect(lessLoadedNodes("a", new Map([["a", 5]]))).toEqual([]);
  });
});
