/** Definitions that read like an attack: told of once, and withheld where the config says so. */
import { type DefinitionFinding, scanDefinition } from "../guard/definitions/scan-definition.ts";
import { type ListedTool, listedTool } from "../guard/definitions/listed-tool.ts";
import { findShadowing, type Shadowing } from "../guard/definitions/shadowing.ts";
import type { Capability, ToolCapability } from "../model/capability.ts";
import type { Clock } from "../model/clock.ts";
import type { GuardRules } from "../model/config.ts";
import type { Decision } from "../model/decision.ts";
import { isAtLeast } from "../model/finding.ts";

/** Looking for shadowing takes all tools together. While many servers come up it may take this part of the time. */
const SHARE = 1 / 20;
/** Up to so many it is done at once. */
const FEW_TOOLS = 1000;

interface ScannedDefinitionsOptions {
  readonly clock: Clock;
  /** Asked each time: the config may change. */
  readonly mode: () => GuardRules["definitions"];
  readonly isTrusted: (source: string) => boolean;
  readonly onSuspicious: (capability: Capability, findings: readonly DefinitionFinding[]) => void;
  /** Those that were not told of before, whatever their severity. */
  readonly onShadowing: (found: readonly Shadowing[]) => void;
}

export class ScannedDefinitions {
  readonly #options: ScannedDefinitionsOptions;
  /** Definitions are immutable objects, so each is scanned once in its life. */
  readonly #scanned = new WeakMap<object, readonly DefinitionFinding[]>();
  readonly #tools = new WeakMap<object, ListedTool>();
  readonly #told = new Set<string>();
  #latest: readonly ToolCapability[] = [];
  #lastTookMs = 0;
  #stopTimer: (() => void) | undefined;

  constructor(options: ScannedDefinitionsOptions) {
    this.#options = options;
  }

  /** To be called with everything that is listed, whenever that changes. */
  check(capabilities: readonly Capability[]): void {
    if (this.#options.mode() === "ignore") return;
    for (const capability of capabilities) {
      const findings = this.#scan(capability);
      if (findings.length > 0)
        this.#once(`${capability.kind} ${capability.name} ${capability.fingerprint}`, () =>
          this.#options.onSuspicious(capability, findings),
        );
    }
    this.#latest = capabilities.filter((capability): capability is ToolCapability => capability.kind === "tool");
    if (this.#latest.length <= FEW_TOOLS || this.#lastTookMs === 0) this.#checkTogether();
    // It withholds nothing and only tells, so that it can wait.
    else this.#stopTimer ??= this.#options.clock.after(this.#lastTookMs / SHARE, () => this.#checkTogether());
  }

  close(): void {
    this.#stopTimer?.();
  }

  #checkTogether(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const begun = performance.now();
    const news: Shadowing[] = [];
    for (const shadowing of findShadowing(this.#latest.map((tool) => this.#listed(tool)))) {
      const { kind, severity, tool, target } = shadowing;
      // A trusted server may speak of whatever it likes. Of two names either may be the false one.
      if (this.#options.isTrusted(tool.server) && (kind === "mention" || this.#options.isTrusted(target.server)))
        continue;
      this.#once(JSON.stringify([kind, severity, tool, target]), () => news.push(shadowing));
    }
    this.#lastTookMs = performance.now() - begun;
    if (news.length > 0) this.#options.onShadowing(news);
  }

  objectionTo(capability: Capability): Decision | undefined {
    if (this.#options.mode() !== "quarantine") return undefined;
    const [worst] = this.#scan(capability);
    if (worst === undefined) return undefined;
    const where = `its own definition (${worst.path}); guard.definitions is quarantine`;
    return { verdict: "deny", rule: { level: "tool", list: "definitions", pattern: worst.finding.code, where } };
  }

  findings(capability: Capability): readonly DefinitionFinding[] {
    return this.#scan(capability);
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

  /** The catalog changes often, definitions do not. */
  #listed(tool: ToolCapability): ListedTool {
    const known = this.#tools.get(tool.definition);
    if (known?.publicName === tool.name) return known;
    const made = listedTool(tool);
    this.#tools.set(tool.definition, made);
    return made;
  }

  #once(key: string, tell: () => void): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    tell();
  }
}
