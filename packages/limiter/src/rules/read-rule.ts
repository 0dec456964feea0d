import { type Algorithm, InvalidLimitError } from '../algorithms/algorithm.ts'
import { explain, explainWord, type Problem } from './explain.ts'
import { isMap } from './is-map.ts'
import type { Rule } from './rule.ts'
import { hintForWord } from './schema/hints.ts'
import { anyRuleSchema, offRuleSchema, type RuleInput, ruleSchema } from './schema/schema.ts'
import type { Vocabulary } from './schema/vocabulary.ts'
import { joinNames, show } from './show.ts'
import { suggest } from './suggest.ts'

/** What a rule may refer to in its document. */
export interface Surroundings {
  readonly vocabulary: Vocabulary
  /** The names that `identify` defines. */
  readonly identified: readonly string[]
  readonly hasStore: boolean
}

export type RuleReader = (value: unknown) => { readonly rule?: Rule; readonly problems: readonly Problem[] }

/** Makes what reads the rules of one document; schemas are built once for all of them. */
export function createRuleReader(surroundings: Surroundings): RuleReader {
  const { vocabulary, identified } = surroundings
  const [standard] = vocabulary.algorithms
  const schemas = new Map(
    vocabulary.algorithms.map(algorithm => [algorithm, ruleSchema(algorithm, vocabulary, identified)] as const),
  )
  const offSchema = offRuleSchema(vocabulary, identified)
  const anySchema = anyRuleSchema(vocabulary, identified)
  return value => {
    const words = isMap(value) ? value : {}
    const problems = unusedOptions(words, surroundings)
    if (words.enabled === false && words.limit === undefined && words.algorithm === undefined) {
      const off = explain(offSchema, value)
      return off.data
        ? { rule: ruleThatIsOff(off.data.id, standard!), problems }
        : { problems: [...problems, ...off.problems] }
    }
    const algorithm =
      words.algorithm === undefined ? standard : vocabulary.algorithms.find(one => one.name === words.algorithm)
    const schema = algorithm && schemas.get(algorithm)
    if (!schema) return { problems: [...problems, ...explain(anySchema, value).problems] }
    const read = explain(schema, value, (word, known) => unknownWord(word, known, vocabulary))
    if (!read.data) return { problems: [...problems, ...read.problems] }
    const rule = toRule(read.data, algorithm, surroundings)
    problems.push(...invalidLimits(rule, algorithm, Array.isArray(words.limit)))
    if (rule.countWhen && algorithm.limit === 'count') {
      const what = `is not for ${algorithm.name}, whose places are given back anyway: leave countWhen out`
      problems.push({ path: ['countWhen'], atWord: true, what })
    }
    return { rule, problems }
  }
}

/** Words that mean nothing in the company they are in. */
function unusedOptions(words: Readonly<Record<string, unknown>>, { hasStore }: Surroundings): Problem[] {
  const problems: Problem[] = []
  const add = (word: string, what: string, atWord: boolean) => problems.push({ path: [word], atWord, what })
  if (words.count === 'distributed' && !hasStore) {
    add('count', 'distributed needs a store: add store: { redis: … } to the document, or write count: local', false)
  }
  if (words.whenStoreDown !== undefined && !hasStore) {
    add('whenStoreDown', 'needs a store: add store: { redis: … } to the document, or leave whenStoreDown out', true)
  }
  if (words.queue !== undefined && words.whenFull !== 'wait') {
    add('queue', 'is only for rules that wait: add whenFull: wait, or leave queue out', true)
  }
  if (words.missing !== undefined && [words.by ?? []].flat().length === 0) {
    add('missing', 'is only for rules that count by something: add by, or leave missing out', true)
  }
  return problems
}

/** Only its id means something: that no rule of the name is in force. */
function ruleThatIsOff(id: string, { name }: Algorithm): Rule {
  const rest = { match: {}, by: [], options: {}, limits: [], queue: { size: 1 } } as const
  return { id, enabled: false, algorithm: name, ...rest, count: 'local', whenFull: 'refuse', whenStoreDown: 'share' }
}

/** What to say of a word that rules of this algorithm do not have: it may be a word of another. */
function unknownWord(word: string, known: readonly string[], { algorithms }: Vocabulary): string {
  const ownersOf = (name: string) => algorithms.filter(one => Object.hasOwn(one.options, name)).map(one => one.name)
  const owners = ownersOf(word)
  if (owners.length > 0) {
    return `belongs to ${owners.join(', ')}: set algorithm: ${joinNames(owners)}, or leave ${word} out`
  }
  if (hintForWord(word, known) !== undefined) return explainWord(word, known)
  const words = algorithms.flatMap(one => Object.keys(one.options))
  const foreign = suggest(word, known) ? undefined : suggest(word, words)
  if (foreign === undefined) return explainWord(word, known)
  return `is not a word known here: did you mean ${foreign}, a word of ${ownersOf(foreign).join(', ')}?`
}

function toRule(words: RuleInput, algorithm: Algorithm, { hasStore }: Surroundings): Rule {
  const { id, enabled, match, by, whenFull, whenStoreDown, answer } = words
  const { missing, cost, countWhen, block, allow, deny } = words
  const own = Object.entries(words).filter(([word]) => Object.hasOwn(algorithm.options, word))
  return {
    id,
    enabled,
    match,
    by,
    algorithm: algorithm.name,
    options: Object.fromEntries(own),
    limits: words.limit,
    count: words.count ?? (hasStore ? 'distributed' : 'local'),
    whenFull,
    whenStoreDown,
    queue: { size: words.queue.size, timeoutMs: words.queue.timeout },
    answer,
    missing,
    cost,
    countWhen,
    block,
    allow,
    deny,
  }
}

/** Tries each limit with its algorithm, which alone knows which numbers it can count. */
function invalidLimits(rule: Rule, algorithm: Algorithm, hasLevels: boolean): Problem[] {
  const { timeoutMs } = rule.queue
  const timeoutUs = timeoutMs === undefined ? undefined : timeoutMs * 1000
  const waitOptions = rule.whenFull === 'wait' ? { timeoutUs } : undefined
  const problems = rule.limits.flatMap((limit, level) => {
    const invalidLimit = tryMeter(() => algorithm.meter(limit, rule.options, waitOptions))
    if (!invalidLimit) return []
    const path = invalidLimit.field === 'limit' && hasLevels ? ['limit', level] : [invalidLimit.field]
    return [{ path, atWord: false, what: invalidLimit.message }]
  })
  // a fault of an option is the same at every level
  return problems.filter(({ path }, index) => problems.findIndex(other => other.path.join() === path.join()) === index)
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
