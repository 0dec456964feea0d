import type { z } from 'zod'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import type { Section } from './section.ts'

/** The words that rules may use beyond those of the rule file itself; users add theirs by passing a longer list. */
export interface Vocabulary {
  /** The first one is the default of a rule that names none. */
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly {
    readonly name: string
    readonly argument: 'none' | 'required'
    /** The arguments that it knows; left out, any. */
    readonly arguments?: readonly string[] | undefined
    /** The word of the document without which it finds nothing. */
    readonly needs?: string | undefined
  }[]
  /** The words that the document has; left out, whatever dimensions need is there. */
  readonly words?: readonly string[] | undefined
  /** The config centres that `remote` may name, by the word that holds the address. */
  readonly sources: readonly {
    readonly name: string
    readonly options: z.ZodRawShape
    /** Throws where the address or the words beside it cannot be obeyed. */
    create(address: string, options: Readonly<Record<string, unknown>>): unknown
  }[]
  /** Further parts of a rule file, each read by its own schema; left out, those of Diana's other programs pass unread. */
  readonly sections?: readonly Section[] | undefined
}
