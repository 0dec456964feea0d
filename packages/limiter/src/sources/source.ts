import type { z } from 'zod'

/** A rule document as a source holds it. */
export interface SourceDocument {
  readonly text: string
  /**
   * The source has no document: it was deleted, or never written. The text is then empty. An empty text without this word
   * is a document that cannot be obeyed.
   */
  readonly isMissing?: true | undefined
  /** The source's own mark of this content, for people. */
  readonly version: string
}

/** Where a rule document comes from. */
export interface Source {
  /** For people, never with credentials. */
  readonly name: string
  /**
   * Yields the document as it is, then each time it has changed, until the signal ends it; throws when the source cannot
   * be reached or answers nonsense.
   */
  watch(signal: AbortSignal): AsyncIterable<SourceDocument>
  /**
   * Puts a text in the place of the document `base`, as it was just read, and tells the new one's version; a DianaError
   * CONFLICT where something else stands there by now, which is then left as it is. A source without this is read only.
   */
  write?(text: string, base: SourceDocument, signal: AbortSignal): Promise<string>
}

/** A kind of source that a rule file may name under `remote:`, by the word that holds its address. */
export interface SourceKind {
  readonly name: string
  /** The words that stand beside the address. */
  readonly options: z.ZodRawShape
  /** Opens nothing; throws a DianaError where the address cannot be obeyed. `options` are as their schema read them. */
  create(address: string, options: Readonly<Record<string, unknown>>): Source
}
