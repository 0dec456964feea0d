import { type Algorithm, InvalidLimitError } from '../algorithms/algorithm.ts'
import { once } from '../common/once.ts'
import { foldStatus } from './answer-option.ts'
import { explain, explainOption, type Problem } from './explain.ts'
import { getOrAdd } from './get-or-add.ts'
import { isMap } from './is-map.ts'
import { namesCalendar } from './limit-text.ts'
import type { Rule } from './rule.ts'
import { hintForOption } from './schema/hints.ts'
import { shapeOf } from './schema/option-shape.ts'
import { anyRuleSchema, offRuleSchema, type RuleInput, ruleSchema } from './schema/schema.ts'
import type { Vocabulary } from './schema/vocabulary.ts'
import { joinNames, show } from './show.ts'
import { suggest } from './suggest.ts'
import { unusedOptions } from './unused-options.ts'

/** The parts of its document that a rule may refer to. */
export interface Surroundings {
  readonly vocabulary: Vocabulary
  /** The names that `identify` defines. */
  readonly identified: readonly string[]
  readonly hasStore: boolean
}

export type RuleReader = (value: unknown) => { readonly rule?: Rule; readonly problems: readonly Problem[] }

/** Creates the parser for the rules of one document; each schema is built with the first rule that needs it. */
export function createRuleReader(surroundings: Surroundings): RuleReader {
  const { vocabulary, identified } = surroundings
  const [standard] = vocabulary.algorithms
  const schemas = new Map<Algorithm, ReturnType<typeof ruleSchema>>()
  const offSchema = once(() => offRuleSchema(vocabulary, identified))
  const anySchema = once(() => anyRuleSchema(vocabulary, identified))
  const readFolded: RuleReader = value => {
    const options = isMap(value) ? value : {}
    const problems = unusedOptions(options, surroundings.hasStore)
    if (options.enabled === false && options.limit === undefined && options.algorithm === undefined) {
      const off = explain(offSchema(), value)
      return off.data
        ? { rule: ruleThatIsOff(off.data.id, standard!), problems }
        : { problems: [...problems, ...off.problems] }
    }
    const algorithm =
      options.algorithm === undefined
        ? defaultFor(options.limit, vocabulary)
        : vocabulary.algorithms.find(one => one.name === options.algorithm)
    if (!algorithm) return { problems: [...problems, ...explain(anySchema(), value).problems] }
    const schema = getOrAdd(schemas, algorithm, () => ruleSchema(algorithm, vocabulary, identified))
    const read = explain(schema, value, (name, known) => unknownOption(name, known, vocabulary))
    if (!read.data) return { problems: [...problems, ...read.problems] }
    const rule = toRule(read.data, algorithm, surroundings)
    problems.push(...invalidLimits(rule, algorithm, Array.isArray(options.limit)), ...invalidPlans(rule, algorithm))
    for (const name of ['countWhen', 'resetWhen'] as const) {
      if (!rule[name] || algorithm.limit !== 'count') continue
      const what = `is not for ${algorithm.name}, whose places are given back anyway: leave ${name} out`
      problems.push({ path: [name], atName: true, what })
    }
    if (rule.cost !== undefined && isMeasured(rule.cost) && algorithm.limit === 'count') {
      const what = `is not for ${algorithm.name}, which counts calls: leave reserve and settle out`
      problems.push({ path: ['cost'], atName: true, what })
    }
    problems.push(...invalidCredit(rule, algorithm))
    return { rule, problems }
  }
  return value => {
    if (!isMap(value) || value.status === undefined) return readFolded(value)
    const { options, problems: double, asGiven } = foldStatus(value)
    const { problems, ...read } = readFolded(options)
    return { ...read, problems: [...double, ...asGiven(problems)] }
  }
}

/** Returns why `credit` is invalid: it stands in for one limit that refuses calls and frees what it has counted by time. */
function invalidCredit({ credit, limits, block, whenFull }: Rule, algorithm: Algorithm): Problem[] {
  if (!credit) return []
  const what =
    algorithm.limit === 'count'
      ? `is not for ${algorithm.name}, whose places are given back: leave credit out`
      : limits.length > 1
        ? 'is for rules with one limit: put the others into rules of their own'
        : block !== undefined
          ? 'is not for rules that block callers: leave block or credit out'
          : whenFull === 'shadow'
            ? 'is for rules that refuse calls: leave whenFull: shadow or credit out'
            : undefined
  return what === undefined ? [] : [{ path: ['credit'], atName: true, what }]
}

function isMeasured(cost: NonNullable<Rule['cost']>): boolean {
  return typeof cost === 'object' && (cost.reserve !== undefined || cost.settle !== undefined)
}

/** Returns the first algorithm; of those that can count it for a calendar period. */
function defaultFor(limit: unknown, { algorithms }: Vocabulary): Algorithm | undefined {
  return (namesCalendar(limit) && algorithms.find(({ hasCalendar }) => hasCalendar)) || algorithms[0]
}

/** Makes a rule that has only an id: no rule with this id is in force. */
function ruleThatIsOff(id: string, { name }: Algorithm): Rule {
  const rest = { match: {}, by: [], options: {}, limits: [], queue: { size: 1 } } as const
  return {
    id,
    enabled: false,
    algorithm: name,
    ...rest,
    count: 'local',
    whenFull: 'refuse',
    whenStoreDown: 'share',
    lease: 'auto',
  }
}

/** Returns the message for an option that this algorithm does not have: it may belong to another one. */
function unknownOption(name: string, known: readonly string[], { algorithms }: Vocabulary): string {
  const ownersOf = (name: string) =>
    algorithms.filter(one => Object.hasOwn(shapeOf(one.options), name)).map(one => one.name)
  const owners = ownersOf(name)
  if (owners.length > 0) {
    return `belongs to ${owners.join(', ')}: set algorithm: ${joinNames(owners)}, or leave ${name} out`
  }
  if (hintForOption(name, known) !== undefined) return explainOption(name, known)
  const names = algorithms.flatMap(one => Object.keys(shapeOf(one.options)))
  const foreign = suggest(name, known) ? undefined : suggest(name, names)
  if (foreign === undefined) return explainOption(name, known)
  return `is not a known option: did you mean ${foreign}, an option of ${ownersOf(foreign).join(', ')}?`
}

function toRule(options: RuleInput, algorithm: Algorithm, { hasStore }: Surroundings): Rule {
  const { id, enabled, match, by, whenFull, whenStoreDown, lease, answer } = options
  const { missing, cost, countWhen, resetWhen, block, credit, allow, deny } = options
  const own = shapeOf(algorithm.options)
  const ownOptions = Object.entries(options).filter(([name]) => Object.hasOwn(own, name))
  return {
    id,
    enabled,
    match,
    by,
    algorithm: algorithm.name,
    options: Object.fromEntries(ownOptions),
    ...('plans' in options.limit
      ? { limits: [options.limit.default], plans: options.limit.plans }
      : { limits: options.limit }),
    count: options.count ?? (hasStore ? 'distributed' : 'local'),
    whenFull,
    whenStoreDown,
    lease,
    queue: { size: options.queue.size, timeoutMs: options.queue.timeout, perCaller: options.queue.perCaller },
    answer,
    missing,
    cost,
    countWhen,
    resetWhen,
    block,
    ...(credit ? { credit } : {}),
    allow,
    deny,
  }
}

/** Tries each limit with its algorithm, which alone knows the numbers that it can count. */
function invalidLimits(rule: Rule, algorithm: Algorithm, hasLevels: boolean): Problem[] {
  const { timeoutMs } = rule.queue
  const timeoutUs = timeoutMs === undefined ? undefined : timeoutMs * 1000
  const waitOptions = rule.whenFull === 'wait' ? { timeoutUs } : undefined
  const invalidTogether = tryMeter(() => algorithm.checkLevels?.(rule.limits, rule.options))
  if (invalidTogether) return [{ path: [invalidTogether.field], atName: false, what: invalidTogether.message }]
  const problems = rule.limits.flatMap((limit, level) => {
    const invalidLimit = tryMeter(() => algorithm.meter(limit, rule.options, waitOptions))
    if (!invalidLimit) return []
    const path = invalidLimit.field === 'limit' && hasLevels ? ['limit', level] : [invalidLimit.field]
    return [{ path, atName: false, what: invalidLimit.message }]
  })
  // a fault of an option is the same at every level
  return problems.filter(({ path }, index) => problems.findIndex(other => other.path.join() === path.join()) === index)
}

/** Tries the limit of each plan, and says what a limit that depends on the caller cannot be combined with. */
function invalidPlans({ plans, by, options, whenFull, queue }: Rule, algorithm: Algorithm): Problem[] {
  if (plans === undefined) return []
  const waitOptions = whenFull === 'wait' ? { timeoutUs: queue.timeoutMs && queue.timeoutMs * 1000 } : undefined
  const problems: Problem[] = Object.entries(plans.values).flatMap(([name, terms]) => {
    const invalid = tryMeter(() => algorithm.meter(terms.limit, { ...options, ...terms.options }, waitOptions))
    return invalid ? [{ path: ['limit', 'values', name], atName: false, what: invalid.message }] : []
  })
  if (by.length === 0) {
    const what = 'needs callers to have limits: add by, such as by: account'
    problems.push({ path: ['limit'], atName: true, what })
  }
  for (const [, name = ''] of plans.from?.address.matchAll(/\{([^{}]+)\}/g) ?? []) {
    if (by.includes(name)) continue
    const what = `names {${name}}, and the rule does not count by it: write ${joinNames(by.map(one => `{${one}}`))}`
    problems.push({ path: ['limit', 'from'], atName: false, what })
  }
  return problems
}

function tryMeter(meter: () => unknown): { readonly field: string; readonly message: string } | undefined {
  try {
    meter()
    return undefined
  } catch (error) {
    if (error instanceof InvalidLimitError) return error
    return { field: 'limit', message: `cannot be counted: ${error instanceof Error ? error.message : show(error)}` }
  }
}
