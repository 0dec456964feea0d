import type { CallReader, GivenFunctions, LimitReader } from '../dimensions/reading/given-functions.ts'
import { isMap } from './is-map.ts'
import type { DocumentOptions, RuleOptions } from './schema/options.ts'

const MAX_COST = 1_000_000_000

/** Options with a name in place of each function, which is kept in `given`. */
export function documentToInput(options: DocumentOptions, given: GivenFunctions): object {
  const { identify, rules } = options
  const named = isMap(identify)
    ? Object.entries(identify).map(([name, sources]) => [name, toInput(sources, `identify.${name}`, given)])
    : undefined
  return {
    ...options,
    ...(named && { identify: Object.fromEntries(named) }),
    ...(Array.isArray(rules) && { rules: rules.map(rule => ruleToInput(rule as RuleOptions, given)) }),
  }
}

/** Returns a rule with a name in place of each function, which is kept in `given`. */
export function ruleToInput(options: RuleOptions, given: GivenFunctions): unknown {
  if (!isMap(options)) return options
  const { id, by, cost, limit } = options as RuleOptions
  const from = isMap(limit) ? limit.from : undefined
  return {
    ...options,
    ...(by !== undefined && { by: toInput(by, `${id}.by`, given) }),
    ...(typeof from === 'function' && {
      limit: { ...(limit as object), from: given.nameForLimit(`${id}.limit.from`, from as LimitReader) },
    }),
    // a cost from the application's own function is trusted up to the largest count
    ...(typeof cost === 'function' && {
      cost: { from: given.nameFor(`${id}.cost`, cost), least: 0, most: MAX_COST },
    }),
  }
}

function toInput(value: unknown, name: string, given: GivenFunctions): unknown {
  if (typeof value === 'function') return given.nameFor(name, value as CallReader)
  if (!Array.isArray(value)) return value
  return value.map((item, index) => toInput(item, `${name}.${index}`, given))
}
