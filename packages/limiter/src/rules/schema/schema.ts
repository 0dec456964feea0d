import type { Algorithm, Limit } from '../../algorithms/algorithm.ts'
import { duration } from '../../common/duration-schema.ts'
import { prefixFault } from '../../common/redis-url.ts'
import type { Missing } from '../../dimensions/key.ts'
import * as z from '../../shapes/index.ts'
import { byFault, nameFault, sourceFault } from '../dimension-name.ts'
import { networkFault } from '../match/address.ts'
import type { CallerList } from '../match/callers.ts'
import type { StatusRange } from '../match/count-when.ts'
import type { Answer, Match, RemoteAddress, Rule, RuleDocument, WhenFull, WhenStoreDown } from '../rule.ts'
import { documentAnswerSchema, ruleAnswerSchema, statusSchema } from './answer.ts'
import { blockSchema, callersSchema, costSchema, countWhenSchema, jwtSchema } from './callers.ts'
import type { CostInput } from './cost.ts'
import { limitOf } from './limit.ts'
import { matchSchema } from './match.ts'
import { shapeOf } from './option-shape.ts'
import { type PlansInput, plansSchema } from './plans.ts'
import { overloadSchema, prioritySchema } from './priority.ts'
import { sectionsWith } from './section.ts'
import { listOf, redisAddress, textOf, withoutDoubles } from './shape.ts'
import type { Vocabulary } from './vocabulary.ts'

/** The options of a document, with rules not yet parsed. */
export interface DocumentInput extends Omit<RuleDocument, 'statesProxies' | 'plugins' | 'rules'> {
  readonly plugins: readonly string[]
  readonly rules: readonly unknown[]
}

/** The options of a rule that all algorithms share, without those of its algorithm. */
export interface RuleInput {
  readonly id: string
  readonly enabled: boolean
  readonly match: Match
  readonly by: readonly string[]
  readonly limit: readonly Limit[] | PlansInput
  readonly count?: Rule['count'] | undefined
  readonly whenFull: WhenFull
  readonly queue: {
    readonly size: number
    readonly timeout?: number | undefined
    readonly perCaller?: number | undefined
  }
  readonly whenStoreDown: WhenStoreDown
  readonly lease: 'auto' | 'off'
  readonly answer?: Partial<Answer> | undefined
  readonly missing?: Missing | undefined
  readonly cost?: CostInput | undefined
  readonly countWhen?: readonly StatusRange[] | undefined
  readonly resetWhen?: readonly StatusRange[] | undefined
  readonly block?: Rule['block']
  readonly credit?: boolean | undefined
  readonly allow?: CallerList | undefined
  readonly deny?: CallerList | undefined
}

export const MAX_RULES = 10_000
export const MAX_NAMES = 100

const store = z
  .strictObject({
    redis: listOf(redisAddress(), { min: 1, max: 100 }).describe(
      'The URL of Redis, the path of its socket, or the URLs of its nodes.',
    ),
    timeout: duration.default(400).describe('How long a call may wait for the store.'),
    fleet: z
      .int()
      .min(1)
      .max(100_000)
      .optional()
      .describe('How many processes share the limits, for a start without the store; default: 1.'),
    prefix: textOf(prefixFault)
      .optional()
      .describe('What every key in Redis begins with; services of different prefixes share nothing; default: diana.'),
  })
  .transform(({ redis, timeout, fleet, prefix }) => ({
    redis,
    timeoutMs: timeout,
    fleet,
    ...(prefix === undefined ? {} : { prefix }),
  }))

const NO_RULES = 'must be a list of at least one rule, each with id and limit: - { id: all, limit: 100/s }'

function isEmpty(input: unknown): boolean {
  return input === undefined || input === null || (Array.isArray(input) && input.length === 0)
}

/** Makes the schema of the options of a document; `rule` is the schema of each rule. */
export function documentSchema(
  vocabulary: Vocabulary,
  rule: z.Schema,
  remote: z.Schema<RemoteAddress>,
  leastRules: number,
  identified: readonly string[] = [],
): z.Schema<DocumentInput> {
  const network = textOf(networkFault, 64)
  const source = textOf(text => sourceFault(text, vocabulary), 256)
  const sections = sectionsWith(vocabulary.sections)
  const document = z.strictObject({
    ...Object.fromEntries(sections.map(({ name, schema }) => [name, z.toSchema(schema).optional()])),
    identify: z
      .record(
        textOf(text => nameFault(text, vocabulary)),
        listOf(source, { min: 0, max: 32 }),
      )
      .refine(map => Object.keys(map).length <= MAX_NAMES, {
        error: `has over ${MAX_NAMES} names: keep those that rules use`,
      })
      .default({})
      .describe('Where to find a dimension in a call; the first source present wins.'),
    trustProxy: z
      .union([z.int().min(0).max(32), listOf(network, { min: 0, max: 1000 })], {
        error: 'must be a number of hops from 0 to 32, or a list of networks such as 10.0.0.0/8',
      })
      .default(0)
      .describe('Trusted hops, or trusted networks; left out, no proxy is trusted.'),
    forwardedBy: z
      .enum(['x-forwarded-for', 'forwarded'])
      .default('x-forwarded-for')
      .describe('The header in which trusted proxies name the caller.'),
    ipv6Prefix: z
      .literal([48, 56, 64, 128])
      .default(64)
      .describe('How many bits of an IPv6 address identify a caller.'),
    jwt: jwtSchema.optional().describe('Whose tokens are believed, for jwt:<claim>.'),
    allow: callersSchema(vocabulary, identified).optional().describe('Callers who pass uncounted.'),
    deny: callersSchema(vocabulary, identified).optional().describe('Callers who are always refused.'),
    store: store.optional().describe('Where distributed counts live; left out, all is counted in this process.'),
    remote: remote.optional().describe('A config center, whose rules override these.'),
    status: statusSchema.optional().describe('The HTTP status of a refusal, as answer.status; default 503.'),
    answer: documentAnswerSchema.default({ status: 503, headers: 'draft-11' }).describe('What a refused caller gets.'),
    priority: prioritySchema(vocabulary, identified).optional().describe('Which calls are refused last in overload.'),
    overload: overloadSchema(vocabulary, identified)
      .optional()
      .describe('Refuses calls when this process itself has too much to do.'),
    whenFailed: z
      .enum(['pass', 'refuse'])
      .optional()
      .describe(
        'What becomes of a call that an error keeps Diana from judging: it passes uncounted (the default), or gets a 503.',
      ),
    plugins: z
      .array(z.string().min(1).max(1024))
      .max(100)
      .default([])
      .describe('Modules whose algorithms, dimensions and sources these rules use.'),
    rules: z
      .array(rule, { error: ({ input }) => (isEmpty(input) ? NO_RULES : undefined) })
      .min(leastRules)
      .max(MAX_RULES)
      .describe('The limits; a call passes when all that match it allow it.'),
  })
  return document.superRefine(({ priority = [], trustProxy }, context) => {
    const index = priority.findIndex(({ header }) => header !== undefined)
    if (index < 0 || (typeof trustProxy === 'number' ? trustProxy > 0 : trustProxy.length > 0)) return
    const message = 'is believed from trusted proxies only, and none is trusted: set trustProxy, or use match'
    context.addIssue({ code: 'custom', path: ['priority', index, 'header'], message })
  })
}

/** Makes the schema of a rule of this algorithm; `identified` are the names that `identify` defines. */
export function ruleSchema(
  algorithm: Algorithm,
  vocabulary: Vocabulary,
  identified: readonly string[],
): z.Schema<RuleInput> {
  const name = z.literal(algorithm.name).describe('How calls are counted.')
  const shape = {
    ...firstOptions(vocabulary, identified),
    limit: z
      .union([
        limitOf(algorithm).transform(one => [one]),
        z.array(limitOf(algorithm)).min(1).max(8),
        plansSchema(algorithm, vocabulary, identified),
      ])
      .describe(
        'How many; of several levels all must hold. Or limits that depend on the caller: { by, values, default }.',
      ),
    algorithm: algorithm === vocabulary.algorithms[0] || algorithm.hasCalendar ? name.default(algorithm.name) : name,
    ...lastOptions,
    ...callerOptions(vocabulary, identified),
  }
  // an algorithm's option must not replace an option that all rules have
  return z.strictObject({ ...shape, ...shapeOf(algorithm.options), ...shape } as typeof shape)
}

/** Makes the schema of a rule that is off, which may leave out its limit. */
export function offRuleSchema(
  vocabulary: Vocabulary,
  identified: readonly string[],
): z.Schema<{ readonly id: string }> {
  const { id, enabled: _, ...options } = firstOptions(vocabulary, identified)
  const rest = z.object({ ...options, ...lastOptions, ...callerOptions(vocabulary, identified) }).partial()
  return z.strictObject({ id, enabled: z.literal(false).describe('The rule is off.'), ...rest.shape })
}

/** Returns the schema of a rule whose algorithm is unknown. */
export function anyRuleSchema(vocabulary: Vocabulary, identified: readonly string[]): z.Schema {
  const algorithm = z.enum(vocabulary.algorithms.map(one => one.name))
  const options = { ...firstOptions(vocabulary, identified), algorithm, ...lastOptions }
  return z.looseObject({ ...options, ...callerOptions(vocabulary, identified) })
}

function firstOptions(vocabulary: Vocabulary, identified: readonly string[]) {
  const dimension = textOf(text => byFault(text, vocabulary, identified), 256)
  return {
    id: z
      .string({ error: ({ input }) => (input === undefined ? 'is missing: name the rule, as in id: sms' : undefined) })
      .regex(/^[\w.-]{1,64}$/, { error: 'must be 1 to 64 letters, digits, -, _ and dots, since headers carry it' })
      .describe('The name of the rule, in answers and reports.'),
    enabled: z.boolean().default(true).describe('false turns the rule off.'),
    match: matchSchema.default({}).describe('Which calls; left out, all.'),
    by: withoutDoubles(listOf(dimension, { min: 0, max: 16 }))
      .default([])
      .describe(
        'The dimensions that identify a caller, such as ip or account; left out, all calls are counted together.',
      ),
  }
}

function callerOptions(vocabulary: Vocabulary, identified: readonly string[]) {
  const callers = callersSchema(vocabulary, identified)
  return {
    missing: z
      .enum(['skip', 'shared', 'address'])
      .optional()
      .describe('Callers who lack a dimension of by: not counted, counted together, or by address.'),
    cost: costSchema(vocabulary).optional().describe('What a call costs; left out, 1 or what the application says.'),
    countWhen: countWhenSchema.optional().describe('Counts only calls that end so: failed, 401, 5xx, 400-404.'),
    resetWhen: countWhenSchema.optional().describe('Calls that end so clear the count of their caller: success, 2xx.'),
    block: blockSchema
      .optional()
      .describe(
        'Callers over the limit stay refused for so long, or ever longer: { first, factor, max, forgetAfter, clear }.',
      ),
    credit: z
      .boolean()
      .optional()
      .describe('Whether callers may have credit: permits beside the limit, which limiter.grant gives them.'),
    allow: callers.optional().describe('Callers that the rule does not apply to.'),
    deny: callers.optional().describe('Callers that the rule always refuses.'),
  }
}

const lastOptions = {
  count: z
    .enum(['local', 'distributed'])
    .optional()
    .describe('In this process, or for the whole fleet; distributed when a store is given.'),
  whenFull: z
    .enum(['refuse', 'wait', 'shadow', 'drop'])
    .default('refuse')
    .describe('Refuse, queue, or only count and report; drop is for messages of WebSockets.'),
  queue: z
    .strictObject({
      size: z.int().min(1).max(100_000).default(1000).describe('How many calls may wait.'),
      timeout: duration.optional().describe('How long each may wait.'),
      perCaller: z
        .int()
        .min(1)
        .max(100_000)
        .optional()
        .describe('How many calls of one caller may wait; default: no more than places are left.'),
    })
    .default({ size: 1000 })
    .describe('With whenFull: wait.'),
  whenStoreDown: z
    .enum(['share', 'local', 'allow', 'refuse'])
    .default('share')
    .describe("This process's part of the limit, the full limit, every call, or none."),
  lease: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe('Whether processes hold permits of busy callers in advance, so that not every call asks the store.'),
  status: statusSchema.optional().describe('The HTTP status of a refusal by this rule, as answer.status.'),
  answer: ruleAnswerSchema.optional().describe('What a refused caller gets from this rule.'),
}
