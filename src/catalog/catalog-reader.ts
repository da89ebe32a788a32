import type { PromptCapability, TemplateCapability, ToolCapability } from "../model/capability.ts";
import type { Source } from "../model/source.ts";
import type { ResourceRoute } from "./snapshot.ts";

/** From public names to what they stand for: of the hub, or of the hub and a session together. */
export interface CatalogReader {
  find(name: string): ToolCapability | undefined;
  findPrompt(name: string): PromptCapability | undefined;
  /** What is listed or fits a template; of a URI that names its server also what is not. */
  findResource(uri: string): ResourceRoute | undefined;
  findTemplate(uriTemplate: string): TemplateCapability | undefined;
  /** The public form of a source's own URI. */
  publicUri(source: string, uri: string): string;
  source(id: string): Source | undefined;
}
