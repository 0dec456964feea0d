import type { CallReader, GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { isMap } from './is-map.ts'
import type { DocumentOptions, RuleOptions } from './schema/options.ts'

const mostCost = 1_000_000_000

/** Options with a word in place of each function, which is kept in `given`. */
export function documentToInput(options: DocumentOptions, given: GivenFunctions): object {
  const { identify, rules } = options
  const named = isMap(identify)
    ? Object.entries(identify).map(([name, sources]) => [name, inWords(sources, `identify.${name}`, given)])
    : undefined
  return {
    ...options,
    ...(named && { identify: Object.fromEntries(named) }),
    ...(Array.isArray(rules) && { rules: rules.map(rule => ruleToInput(rule as RuleOptions, given)) }),
  }
}

/** A rule with a word in place of each function, which is kept in `given`. */
export function ruleToInput(words: RuleOptions, given: GivenFunctions): unknown {
  if (!isMap(words)) return words
  const { id, by, cost } = words as RuleOptions
  return {
    ...words,
    ...(by !== undefined && { by: inWords(by, `${id}.by`, given) }),
    // the program's own word for a cost is believed as far as a count goes
    ...(typeof cost === 'function' && {
      cost: { from: given.wordFor(`${id}.cost`, cost), least: 0, most: mostCost },
    }),
  }
}

function inWords(value: unknown, name: string, given: GivenFunctions): unknown {
  if (typeof value === 'function') return given.wordFor(name, value as CallReader)
  if (!Array.isArray(value)) return value
  return value.map((item, index) => inWords(item, `${name}.${index}`, given))
}
