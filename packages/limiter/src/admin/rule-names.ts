import type { Vocabulary } from '../rules/parse.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { optionsOf } from '../rules/yaml/read-document.ts'

/** The names that rules may use in `algorithm` and `by`. */
export interface RuleNames {
  /** The first one is the default. */
  readonly algorithms: readonly { readonly name: string; readonly limit: 'rate' | 'count' }[]
  /** Dimensions that stand alone: `account`, `ip`, and those that `identify` defines. */
  readonly dimensions: readonly string[]
  /** Dimensions that need a name behind a colon: `header`. */
  readonly namedDimensions: readonly string[]
}

/** Names that need no definition: the application may give their values. */
const given = ['account', 'device']

export function ruleNamesOf({ algorithms, dimensions }: Vocabulary, document: RuleDocument): RuleNames {
  const options = optionsOf(document)
  const usable = dimensions.filter(({ needs }) => needs === undefined || options.includes(needs))
  const named = (argument: 'none' | 'required') => usable.filter(one => one.argument === argument).map(one => one.name)
  return {
    algorithms: algorithms.map(({ name, limit }) => ({ name, limit: limit === 'count' ? 'count' : 'rate' })),
    dimensions: [...new Set([...given, ...Object.keys(document.identify), ...named('none')])],
    namedDimensions: named('required'),
  }
}
