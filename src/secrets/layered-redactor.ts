import { Redactor } from "./redactor.ts";

/**
 * Masks what another redactor masks, and values of its own that the other one never learns: a client that names its
 * secrets must not be able to blot out words in what others read.
 */
export class LayeredRedactor extends Redactor {
  // Declared only: as fields they would be emptied before the constructor can take them over.
  declare readonly mask: (text: string) => string;
  declare readonly maskContent: <Value>(value: Value) => Value;
  #learned = false;

  constructor(base: Redactor) {
    super();
    const { mask, maskContent } = this;
    this.mask = (text) => mask(base.mask(text));
    this.maskContent = (value) => maskContent(base.maskContent(value));
  }

  /** Whether it has any value of its own. */
  get learned(): boolean {
    return this.#learned;
  }

  override add(value: string): void {
    this.#learned = true;
    super.add(value);
  }
}
