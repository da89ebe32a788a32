/** Definitions that read like an attack: told of once, and withheld where the config says so. */
import { type DefinitionFinding, scanDefinition } from "../guard/definitions/scan-definition.ts";
import { findShadowing, type Shadowing } from "../guard/definitions/shadowing.ts";
import type { Capability, ToolCapability } from "../model/capability.ts";
import type { GuardRules } from "../model/config.ts";
import type { Decision } from "../model/decision.ts";
import { isAtLeast } from "../model/finding.ts";

interface ScannedDefinitionsOptions {
  readonly mode: GuardRules["definitions"];
  readonly isTrusted: (source: string) => boolean;
  readonly onSuspicious: (capability: Capability, findings: readonly DefinitionFinding[]) => void;
  readonly onShadowing: (shadowing: Shadowing) => void;
}

export class ScannedDefinitions {
  readonly #options: ScannedDefinitionsOptions;
  /** Definitions are immutable objects, so each is scanned once in its life. */
  readonly #scanned = new WeakMap<object, readonly DefinitionFinding[]>();
  readonly #told = new Set<string>();

  constructor(options: ScannedDefinitionsOptions) {
    this.#options = options;
  }

  /** To be called with everything that is listed, whenever that changes. */
  check(capabilities: readonly Capability[]): void {
    if (this.#options.mode === "ignore") return;
    for (const capability of capabilities) {
      const findings = this.#scan(capability);
      if (findings.length > 0) this.#once(`${capability.kind} ${capability.name} ${capability.fingerprint}`, () => this.#options.onSuspicious(capability, findings));
    }
    const tools = capabilities.filter((capability): capability is ToolCapability => capability.kind === "tool");
    for (const shadowing of findShadowing(tools.map(listed))) {
      if (!isAtLeast(shadowing.severity, "medium")) continue;
      this.#once(JSON.stringify([shadowing.kind, shadowing.tool, shadowing.target]), () => this.#options.onShadowing(shadowing));
    }
  }

  objectionTo(capability: Capability): Decision | undefined {
    if (this.#options.mode !== "quarantine") return undefined;
    const [worst] = this.#scan(capability);
    if (worst === undefined) return undefined;
    const where = `its own definition (${worst.path}); guard.definitions is quarantine`;
    return { verdict: "deny", rule: { level: "tool", list: "definitions", pattern: worst.finding.code, where } };
  }

  /** The serious findings only: definitions speak to models by their nature. */
  #scan({ definition, origin }: Capability): readonly DefinitionFinding[] {
    if (this.#options.isTrusted(origin.source)) return [];
    let findings = this.#scanned.get(definition);
    if (findings === undefined) {
      findings = scanDefinition(definition).filter(({ finding }) => isAtLeast(finding.severity, "medium"));
      this.#scanned.set(definition, findings);
    }
    return findings;
  }

  #once(key: string, tell: () => void): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    tell();
  }
}

function listed({ origin, definition }: ToolCapability): { server: string; name: string; description?: string } {
  const { description } = definition;
  return { server: origin.source, name: origin.name, ...(typeof description === "string" ? { description } : {}) };
}
