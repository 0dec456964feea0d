import type { Algorithm } from '../../algorithms/algorithm.ts'
import type { OptionShape } from '../../common/option-shape.ts'
import type { Dimension } from '../../dimensions/dimension.ts'
import type { Section } from './section.ts'

/** The names that rules may use beyond the rule file's own options; users add theirs by passing a longer list. */
export interface Vocabulary {
  /** The first one is the default of a rule that names none. */
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly Pick<Dimension, 'name' | 'argument' | 'arguments' | 'field' | 'needs'>[]
  /** The top-level options that the document has; left out, all that dimensions need are there. */
  readonly givenOptions?: readonly string[] | undefined
  /** The config centers that `remote` may name, by the option that holds the address. */
  readonly sources: readonly {
    readonly name: string
    readonly options: OptionShape
    /** Throws if the address or its options are invalid. */
    create(address: string, options: Readonly<Record<string, unknown>>): unknown
  }[]
  /** Further sections of a rule file, each with its own schema; left out, the sections of Diana's other programs are not read. */
  readonly sections?: readonly Section[] | undefined
}
