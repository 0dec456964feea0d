import { FOREVER, FOREVER_MS } from '../../common/duration.ts'
import { duration } from '../../common/duration-schema.ts'
import type { JwtSettings } from '../../dimensions/dimension.ts'
import { addressName } from '../../dimensions/find-dimension.ts'
import * as z from '../../shapes/index.ts'
import { byFault, sourceFault } from '../dimension-name.ts'
import { networkFault } from '../match/address.ts'
import type { CallerList } from '../match/callers.ts'
import { parseStatuses, type StatusRange, statusFault } from '../match/count-when.ts'
import type { GrowingBlock } from '../rule.ts'
import { show } from '../show.ts'
import { type CostInput, LONGEST_HOLD_MS } from './cost.ts'
import { costFaults, measuredCostShape } from './measured-cost.ts'
import { listOf, textOf } from './shape.ts'
import type { Vocabulary } from './vocabulary.ts'

const MAX_CALLERS = 10_000
const DAY_MS = 86_400_000
const MAX_COST = 1_000_000_000
const network = textOf(networkFault, 64)
const value = z.union([z.string().min(1).max(1024), z.int().transform(String)])

/** Makes the schema of `10.0.0.0/8`, a list of such networks, or values by dimension: `{ ip: 10.0.0.0/8, account: [u1, u2] }`. */
export function callersSchema(vocabulary: Vocabulary, identified: readonly string[]): z.Schema<CallerList> {
  const name = textOf(text => byFault(text, vocabulary, identified), 256)
  const address = addressName(vocabulary.dimensions)
  const size = { min: 1, max: MAX_CALLERS }
  const byDimension = z.record(name, listOf(value, size)).superRefine((map, context) => {
    for (const [index, text] of (map[address] ?? []).entries()) {
      const message = networkFault(text)
      if (message !== undefined) context.addIssue({ code: 'custom', path: [address, index], message })
    }
  })
  return z.union([listOf(network, size).transform((networks): CallerList => ({ [address]: networks })), byDimension])
}

const hold = duration.refine(ms => ms <= LONGEST_HOLD_MS, { error: 'must not be longer than 1d', abort: true })

const costWords = ['from', 'overrun', 'hold', 'reserve', 'settle'] as const

/** Makes the schema of `5`, `header:x-cost`, or `{ from: header:x-cost, least: 1, most: 1000, overrun: debt, hold: 10m }`. */
export function costSchema(vocabulary: Vocabulary): z.Schema<CostInput> {
  const from = textOf(text => sourceFault(text, vocabulary), 256)
  const amount = z.int().min(1).max(MAX_COST)
  const read = z
    .strictObject({
      from: from.optional().describe('Where the call has its cost; left out, the application says it.'),
      least: z.int().min(0).max(MAX_COST).default(1).describe('A call costs no less.'),
      most: amount.default(1000).describe('A call costs no more.'),
      overrun: z
        .enum(['debt', 'clip'])
        .optional()
        .describe('What was used beyond the reservation is charged beyond the limit (the default), or up to it.'),
      hold: hold.optional().describe('What is not settled is released after so long; default: 10m.'),
      ...measuredCostShape,
    })
    .refine(options => costWords.some(word => options[word] !== undefined), {
      error: 'says nothing of the cost: write from, overrun or hold, as in cost: { hold: 10m }',
    })
    .superRefine((options, context) => {
      for (const { path, message } of costFaults(options)) context.addIssue({ code: 'custom', path: [path], message })
    })
    .refine(({ least, most }) => least <= most, { error: 'has a least above its most: swap them' })
  return z.union([amount, from.transform(source => ({ from: source, least: 1, most: 1000 })), read])
}

const statuses = z
  .union([z.int().transform(String), z.string().max(16)], { error: statusFault })
  .transform((text, context): StatusRange => {
    const range = parseStatuses(text)
    if (range === undefined) context.addIssue({ code: 'custom', message: `${statusFault}, not ${show(text)}` })
    return range ?? z.NEVER
  })

export const countWhenSchema: z.Schema<readonly StatusRange[]> = listOf(statuses, { min: 1, max: 100 })

/** A duration, or no end. */
const endless = z.literal(FOREVER).transform(() => FOREVER_MS)
const blockTime = z.union([duration, endless])

const growingBlock: z.Schema<GrowingBlock> = z
  .strictObject({
    first: blockTime.describe('How long the first block lasts.'),
    factor: z.number().min(1).max(100).default(2).describe('By how much the next one lasts longer.'),
    max: blockTime.optional().describe('How long a block lasts at most; default: 1d, or first if that is longer.'),
    forgetAfter: duration
      .optional()
      .describe('After so long without a block, the next one is a first one again; default: 7d.'),
    clear: z
      .boolean()
      .default(true)
      .describe('true: a block clears the count, so the caller starts again when it ends; false: the count stays.'),
  })
  .superRefine(({ first, max, factor }, context) => {
    if (max !== undefined && max < first) {
      context.addIssue({ code: 'custom', path: ['max'], message: 'is shorter than first: swap them' })
    }
    if (factor > 1 && factor < 1.1) {
      context.addIssue({ code: 'custom', path: ['factor'], message: 'must be 1, or from 1.1 to 100' })
    }
  })
  .transform(({ first, factor, max = Math.max(DAY_MS, first), forgetAfter = 7 * DAY_MS, clear }) => {
    return { firstMs: first, factor, maxMs: max, forgetAfterMs: forgetAfter, clear }
  })

export const blockSchema: z.Schema<number | 'manual' | GrowingBlock> = z.union([
  duration,
  endless,
  z.literal('manual'),
  growingBlock,
])

export const jwtSchema: z.Schema<JwtSettings> = z
  .strictObject({
    key: listOf(z.string().min(1).max(65_536), { min: 1, max: 20 })
      .default([])
      .describe('A secret, a public key in PEM, a JWK or JWKS; or where it is: env:NAME, file:PATH.'),
    verified: z.boolean().default(false).describe('true: a proxy in front has verified every token.'),
    issuer: z.string().min(1).max(1024).optional().describe('Tokens of others are not believed.'),
    audience: listOf(z.string().min(1).max(1024), { min: 1, max: 100 })
      .optional()
      .describe('Tokens for others are not believed.'),
  })
  .refine(({ key, verified }) => verified !== key.length > 0, {
    error: 'needs a key to verify tokens by, or verified: true if a proxy in front has verified them; not both',
  })
  .transform(({ key, ...options }) => ({ keys: key, ...options }))
