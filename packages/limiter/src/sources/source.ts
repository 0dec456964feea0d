import type { OptionShape, SchemaKit } from '../common/option-shape.ts'
import type * as z from '../shapes/index.ts'

/** A rule document as a source has it. */
export interface SourceDocument {
  readonly text: string
  /**
   * The source has no document: it was deleted, or never written. The text is then empty. An empty text without this field
   * is an invalid document.
   */
  readonly isMissing?: true | undefined
  /** The source's own mark of this content, for people. */
  readonly version: string
}

/** The place that a rule document comes from. */
export interface Source {
  /** For people, never with credentials. */
  readonly name: string
  /**
   * Yields the current document, then each changed one, until the signal ends it; throws when the source cannot be reached
   * or its answer is invalid.
   */
  watch(signal: AbortSignal): AsyncIterable<SourceDocument>
  /**
   * Replaces the document `base`, as it was just read, with a text and returns the new version; throws a DianaError
   * CONFLICT if the document has changed since, and leaves it unchanged. A source without this is read only.
   */
  write?(text: string, base: SourceDocument, signal: AbortSignal): Promise<string>
}

/** A kind of source that a rule file may name under `remote:`, by the option that has its address. */
export interface SourceKind {
  readonly name: string
  /** The options beside the address. */
  readonly options: OptionShape
  /** Opens no connection; throws a DianaError if the address is invalid. `options` are parsed by their schema. */
  create(address: string, options: Readonly<Record<string, unknown>>): Source
}

/** Makes a kind whose `create` gets its own options, typed by its schema. */
export function sourceKind<Shape extends z.Shape>(kind: {
  readonly name: string
  options(kit: SchemaKit): Shape
  create(address: string, options: z.output<z.ObjectSchema<Shape>>): Source
}): SourceKind {
  return kind as unknown as SourceKind
}
