import type { MeasuredCost, ReserveSettings, SettleSettings, WeightOptions } from '../../costs/cost-options.ts'
import { usageFormats } from '../../costs/usage/index.ts'
import * as z from '../../shapes/index.ts'
import { joinNames, show } from '../show.ts'
import { suggest } from '../suggest.ts'
import { listOf, textOf } from './shape.ts'

const MAX_COST = 1_000_000_000
const MAX_WEIGHT = 1_000_000
const MOST_SOURCES = 8
const DEFAULT_RESERVE_MAX = 10_000
const DEFAULT_SETTLE_MAX = 10_000_000

const formats = usageFormats.map(({ name }) => name)
const reserveKinds = ['json:<field>', 'header:<name>', 'bytes', 'bytes/4']
const settleKinds = ['json:<field>', 'header:<name>']

const amount = z.int().min(0).max(MAX_COST)
const atLeastOne = z.int().min(1).max(MAX_COST)
const reserveSource = z.union([atLeastOne.transform(String), textOf(text => fault(text, reserveKinds))])
const timesSource = z.union([atLeastOne.transform(String), textOf(text => fault(text, settleKinds))])
const settleSource = textOf(text => fault(text, settleKinds))
const sources = { min: 1, max: MOST_SOURCES }

const reserve = z
  .strictObject({
    from: listOf(reserveSource, sources).describe(
      'Where a request says how much it may use: json:max_tokens, header:x-max-tokens, a number, bytes/4, openai, anthropic or gemini; of several, the largest.',
    ),
    plus: listOf(reserveSource, { min: 0, max: MOST_SOURCES })
      .default([])
      .describe(
        'What is added to it, such as bytes/4 for the tokens of the request; with openai and the like, the default.',
      ),
    times: listOf(timesSource, { min: 0, max: MOST_SOURCES })
      .default([])
      .describe(
        'What multiplies it, such as json:copies; of several, the largest. The choices of openai and gemini (n, best_of, candidateCount) need not be named.',
      ),
    typical: amount.optional().describe('For a request that does not say how much it may use; default: max.'),
    min: amount.default(1).describe('No less is reserved.'),
    max: atLeastOne
      .default(DEFAULT_RESERVE_MAX)
      .describe('No more is reserved, and so much for a request that cannot be read.'),
  })
  .refine(({ min, max }) => min <= max, { error: 'has a min above its max: swap them' })

const settle = z.strictObject({
  from: listOf(settleSource, sources).describe(
    'Where an answer says what was used: json:usage.total_tokens, header:x-tokens-used, openai, anthropic or gemini; of several, the first that it has.',
  ),
  max: atLeastOne.default(DEFAULT_SETTLE_MAX).describe('An answer that says more counts as so much.'),
})

const weight = z.number().min(0).max(MAX_WEIGHT).default(1)

/** `500`, `openai`, `json:max_tokens`, or `{ from: json:max_tokens, plus: bytes/4, min: 200, max: 8000 }`. */
const reserveSchema: z.Schema<ReserveSettings> = z.union([
  reserveSource.transform(from => ({
    from: [from],
    plus: [],
    times: [],
    min: 1,
    max: Math.max(DEFAULT_RESERVE_MAX, Number(from) || 0),
  })),
  reserve,
])

/** `openai`, `[json:usage.total_tokens, header:x-tokens-used]`, or `{ from: …, max: 100000 }`. */
const settleSchema: z.Schema<SettleSettings> = z.union([
  listOf(settleSource, sources).transform(from => ({ from, max: DEFAULT_SETTLE_MAX })),
  settle,
])

const weightsSchema: z.Schema<WeightOptions> = z.strictObject({
  input: weight.describe('What a token of the request counts; default: 1.'),
  cached: weight.describe('What a token of the request counts that was in a cache; default: 1.'),
  output: weight.describe('What a token of the answer counts; default: 1.'),
})

/** The words of `cost` that read requests and answers. */
export const measuredCostShape: Readonly<{
  reserve: z.OptionalSchema<z.Schema<ReserveSettings>>
  settle: z.OptionalSchema<z.Schema<SettleSettings>>
  weights: z.OptionalSchema<z.Schema<WeightOptions>>
  unit: z.OptionalSchema<z.Schema<string>>
}> = {
  reserve: reserveSchema
    .optional()
    .describe('What is charged before the cost is known; the rest is settled afterwards.'),
  settle: settleSchema.optional().describe('Where the answer has the cost: in its body, its last events or a header.'),
  weights: weightsSchema
    .optional()
    .describe('What tokens of each kind count, if settle names openai, anthropic or gemini.'),
  unit: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, { error: 'must be a word of small letters, as in unit: tokens' })
    .optional()
    .describe('What the rule counts, as headers name it; default with openai, anthropic or gemini: tokens.'),
}

/** Words of `cost` that do not go together. */
export function costFaults({ from, weights, settle, reserve }: MeasuredCost & { readonly from?: unknown }): {
  readonly path: string
  readonly message: string
}[] {
  const faults = []
  if (from !== undefined && reserve !== undefined) {
    faults.push({ path: 'from', message: 'and reserve both say what a call is charged first: leave one of them out' })
  }
  // only usage that is known by name distinguishes input, cached and output tokens
  if (weights !== undefined && !settle?.from.some(text => formats.includes(text))) {
    const message = `needs a usage that distinguishes tokens: add settle: ${joinNames(formats)}, or leave weights out`
    faults.push({ path: 'weights', message })
  }
  return faults
}

function fault(text: string, kinds: readonly string[]): string | undefined {
  const [kind = ''] = text.split(':', 1)
  const all = [...kinds, ...formats]
  const argument = text.slice(kind.length + 1)
  if (formats.includes(text) || (kinds.includes('bytes') && /^bytes(?:\/[1-9]\d{0,5})?$/.test(text))) return undefined
  if (kind === 'json') return fieldFault(text, argument)
  if (kind === 'header') {
    return /^[\w!#$%&'*+.^`|~-]{1,128}$/.test(argument)
      ? undefined
      : `${show(text)} must name a header, as in header:x-tokens-used`
  }
  const names = all.map(name => name.split(':', 1)[0]!)
  const meant = suggest(kind, names)
  const remedy =
    meant === undefined
      ? `write ${joinNames(all)}`
      : `did you mean ${argument === '' ? meant : `${meant}:${argument}`}?`
  return `${show(text)} is not a place to read a cost from: ${remedy}`
}

function fieldFault(text: string, path: string): string | undefined {
  const names = path.split('.')
  if (names.length <= 8 && names.every(name => /^[^\s\p{Cc}.]{1,64}$/u.test(name))) return undefined
  return `${show(text)} must name a field by up to 8 names with dots between them, as in json:usage.total_tokens`
}
